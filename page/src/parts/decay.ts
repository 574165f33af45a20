// The decay of confidence as this node is configured: the factors of the classes, the class of an
// entry that sets none, the prior, and the time after which an unused entry becomes stale.

import { get, type Schemas } from '../api/request';
import { useLoad } from '../api/load';

export const DECAY_CLASSES = ['ephemeral', 'stable', 'permanent'] as const;

export interface Decay {
  /** The factor per day of each class. */
  perDay: Record<string, number>;
  /** The class of an entry that sets none. */
  defaultClass: string;
  prior: { alpha: number; beta: number };
  staleAfter: string;
}

/** The values of `default.toml`, until the settings of the node are read. */
const DEFAULT: Decay = {
  perDay: { ephemeral: 0.98, stable: 0.995, permanent: 1, archived: 0.85 },
  defaultClass: 'ephemeral',
  prior: { alpha: 5, beta: 5 },
  staleAfter: '90 days',
};

function configured(settings: Schemas['NodeSetting'][]): Decay {
  const values = new Map(settings.map((one) => [one.key, one.value.replace(/^"(.*)"$/, '$1')]));
  const number = (key: string, otherwise: number) => {
    const value = Number(values.get(key) ?? NaN);
    return Number.isFinite(value) ? value : otherwise;
  };
  const classes = Object.entries(DEFAULT.perDay).map(([name, factor]) => [name, number(`tuning.confidence.decay_per_day.${name}`, factor)]);
  return {
    perDay: Object.fromEntries(classes) as Record<string, number>,
    defaultClass: values.get('confidence.decay_class') ?? DEFAULT.defaultClass,
    prior: { alpha: number('tuning.confidence.prior_alpha', DEFAULT.prior.alpha), beta: number('tuning.confidence.prior_beta', DEFAULT.prior.beta) },
    staleAfter: values.get('status.stale_after') ?? DEFAULT.staleAfter,
  };
}

let known: Decay | null = null;

async function read(signal: AbortSignal): Promise<Decay> {
  // Settings apply from the start of the node, and a session ends with the node.
  known ??= configured((await get('/v1/settings', { signal })).settings);
  return known;
}

export function useDecay(): Decay {
  return useLoad(read, 'decay', 'never').data ?? known ?? DEFAULT;
}

/** The factor per day in words, such as “half is left after 34 days”. */
export function halfLife(perDay: number): string {
  if (perDay >= 1) return 'does not fade';
  const days = Math.max(1, Math.round(Math.log(0.5) / Math.log(perDay)));
  return `half is left after ${days === 1 ? '1 day' : `${days} days`}`;
}

/** The name of a class with its half-life, for a choice. */
export function classText(decay: Decay, name: string): string {
  return `${name}: ${halfLife(decay.perDay[name] ?? 1)}`;
}
