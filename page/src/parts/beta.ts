// The Beta distribution behind a confidence: its interval now, and how it fades.

const STEPS = 400;

/** The interval between two quantiles of Beta(alpha, beta), by summing the density on a grid. */
export function interval(alpha: number, beta: number, low = 0.1, high = 0.9): [number, number] {
  const densities: number[] = [];
  let highest = -Infinity;
  for (let step = 0; step < STEPS; step += 1) {
    const at = (step + 0.5) / STEPS;
    const density = (alpha - 1) * Math.log(at) + (beta - 1) * Math.log(1 - at);
    densities.push(density);
    highest = Math.max(highest, density);
  }
  const weights = densities.map((density) => Math.exp(density - highest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let [sum, from, to] = [0, 0, 1];
  let isBelow = true;
  for (let step = 0; step < STEPS; step += 1) {
    sum += weights[step]! / total;
    if (isBelow && sum >= low) {
      from = (step + 0.5) / STEPS;
      isBelow = false;
    }
    if (sum >= high) {
      to = (step + 0.5) / STEPS;
      break;
    }
  }
  return [from, to];
}

export interface FadingPoint {
  day: number;
  mean: number;
  low: number;
  high: number;
}

/** The confidence on the coming days if the node observes nothing new. */
export function fade(
  alpha: number,
  beta: number,
  prior: { alpha: number; beta: number },
  perDay: number,
  days: number,
): FadingPoint[] {
  const points: FadingPoint[] = [];
  const step = Math.max(1, Math.round(days / 60));
  for (let day = 0; day <= days; day += step) {
    const left = perDay ** day;
    const a = prior.alpha + Math.max(0, alpha - prior.alpha) * left;
    const b = prior.beta + Math.max(0, beta - prior.beta) * left;
    const [low, high] = interval(a, b);
    points.push({ day, mean: a / (a + b), low, high });
  }
  return points;
}
