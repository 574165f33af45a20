// Badges and bars for the judgements of a node: status, confidence with its certainty, trust.

import { interval } from './beta';
import { plainText } from './text';

const STATUS_TEXT: Record<string, string> = {
  verified: 'Verified',
  active: 'Active',
  candidate: 'Candidate',
  stale: 'Stale',
  archived: 'Archived',
  retracted: 'Retracted',
  disputed: 'Disputed',
  invalidated: 'Marked wrong',
};

export function Status({ status, reason }: { status: string; reason?: string }) {
  return (
    <span class={`badge status-${/^[a-z_]+$/.test(status) ? status : 'other'}`} title={plainText(reason ?? '')}>
      {STATUS_TEXT[status] ?? plainText(status)}
    </span>
  );
}

export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? '–' : `${Math.round(share * 100)} %`;
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share));
}

interface ConfidenceProps {
  alpha: number;
  beta: number;
  mean: number;
  isWide?: boolean;
}

/** The mean as a mark on the range in which 80 % of the probability lies: a short range is certain. */
export function Confidence({ alpha, beta, mean, isWide = false }: ConfidenceProps) {
  const [low, high] = interval(alpha, beta);
  const label = `Confidence ${percent(mean)}, probably between ${percent(low)} and ${percent(high)}`;
  return (
    <span class={`confidence ${isWide ? 'wide' : ''}`} role="img" aria-label={label} title={label}>
      <span class="track">
        <span class="range" style={{ left: `${low * 100}%`, width: `${(high - low) * 100}%` }} />
        <span class="mark" style={{ left: `${clamp(mean) * 100}%` }} />
      </span>
      <span class="number">{percent(mean)}</span>
    </span>
  );
}

export function Meter({ share, label, tone = '' }: { share: number; label: string; tone?: string }) {
  const text = `${plainText(label)}: ${percent(share)}`;
  return (
    <span class={`meter ${tone}`} role="img" aria-label={text} title={text}>
      <span class="fill" style={{ width: `${clamp(share) * 100}%` }} />
    </span>
  );
}

/** Trust in an author in five steps, with the number for people who want it. */
export function Trust({ value, name, isForeign }: { value: number | null | undefined; name: string; isForeign?: boolean | undefined }) {
  if (!isForeign) return <span class="trust own">by you</span>;
  const filled = value === null || value === undefined ? 0 : Math.round(value * 5);
  const label = `Trust in ${plainText(name)}: ${value === null || value === undefined ? 'unknown' : percent(value)}`;
  return (
    <span class="trust" role="img" aria-label={label} title={label}>
      {[1, 2, 3, 4, 5].map((step) => (
        <span class={step <= filled ? 'dot on' : 'dot'} />
      ))}
    </span>
  );
}

export const SIGNALS: [string, string, string][] = [
  ['semantic', 'Relevance', 'How well words and meaning fit the question'],
  ['thompson', 'Confidence', 'A sample of the confidence, so that young entries get a chance'],
  ['freshness', 'Freshness', 'How recently the entry changed or was observed'],
  ['status', 'Status', 'Verified before active before candidate'],
  ['thread', 'Thread', 'The entry belongs to the thread of the caller'],
  ['cooccurrence', 'Served together', 'It often helps together with other hits'],
];

/** The share of each signal in a score, as one stacked bar and a row per signal. */
export function ExplainBars({ adds, signals }: { adds: Record<string, number>; signals: Record<string, number> }) {
  return (
    <table class="explain">
      <caption class="hidden">The share of each signal in the score</caption>
      <tbody>
        {SIGNALS.map(([key, name, meaning], index) => (
          <tr title={meaning}>
            <th scope="row">{name}</th>
            <td>
              <span class="bar">
                <span class={`fill signal-${index}`} style={{ width: `${clamp((adds[key] ?? 0) / 0.4) * 100}%` }} />
              </span>
            </td>
            <td class="number">{(adds[key] ?? 0).toFixed(2)}</td>
            <td class="number muted">{percent(signals[key] ?? 0)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
