// Times, counts and sizes for people.

const UNITS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60_000, 'second'],
  [3_600_000, 'minute'],
  [86_400_000, 'hour'],
  [30 * 86_400_000, 'day'],
  [365 * 86_400_000, 'month'],
  [Infinity, 'year'],
];
const SIZES: Record<string, number> = {
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  month: 30 * 86_400_000,
  year: 365 * 86_400_000,
};
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** The distance from now, such as “2 hours ago”. */
export function ago(at: number | null | undefined): string {
  if (!at) return 'unknown';
  const distance = at - Date.now();
  const size = Math.abs(distance);
  if (size < 5000) return 'just now';
  const unit = UNITS.find(([limit]) => size < limit)![1];
  return relative.format(Math.round(distance / SIZES[unit]!), unit);
}

export function moment(at: number | null | undefined): string {
  return at ? exact.format(new Date(at)) : 'unknown';
}

export function count(number: number): string {
  return number.toLocaleString('en');
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** A size, such as “3.4 MiB”. */
export function bytes(size: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(Math.max(1, size)) / 10));
  const scaled = size / 1024 ** power;
  return `${power === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${BYTE_UNITS[power]}`;
}
