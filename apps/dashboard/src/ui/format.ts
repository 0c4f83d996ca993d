const numbers = new Intl.NumberFormat('en-US');
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

export const formatNumber = (value: number): string => numbers.format(value);
export const formatCompact = (value: number): string =>
  value < 10_000 ? numbers.format(value) : compact.format(value);

/** Formats integer micro-USD. Small costs keep their digits. */
export const formatUsd = (microUsd: number): string => {
  const usd = microUsd / 1_000_000;
  const digits = usd === 0 || usd >= 1 ? 2 : usd >= 0.01 ? 4 : 6;
  return `$${usd.toFixed(digits)}`;
};

const two = (value: number): string => String(value).padStart(2, '0');

/** Formats the time of day in the zone of the reader. */
export const formatClock = (time: string | number | Date): string => {
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** Formats a day and a minute in the zone of the reader, such as `27 Nov 14:00`. */
export const formatDayClock = (time: string | number | Date): string => {
  const date = new Date(time);
  return `${day.format(date)} ${formatClock(date).slice(0, 5)}`;
};

const zone = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' });

/** Returns the zone of the reader at a time, such as `UTC` or `GMT+1`. */
const zoneAt = (date: Date): string =>
  zone.formatToParts(date).find(({ type }) => type === 'timeZoneName')?.value ?? '';

/** Formats a time with its zone, such as `2026-11-23 14:01:38 UTC`. */
export const formatDate = (time: string | number | Date): string => {
  const date = new Date(time);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${formatClock(date)} ${zoneAt(date)}`;
};

/** Formats the time since, such as `3 min ago`. */
export const formatAge = (time: string | number | Date, now: number): string => {
  const seconds = Math.round((now - new Date(time).getTime()) / 1_000);
  const [past, size] = seconds < 0 ? ['in ', -seconds] : ['', seconds];
  const text =
    size < 5 && past === ''
      ? 'now'
      : size < 60
        ? `${size} s`
        : size < 3_600
          ? `${Math.floor(size / 60)} min`
          : size < 86_400
            ? `${Math.floor(size / 3_600)} h`
            : `${Math.floor(size / 86_400)} d`;
  return text === 'now' ? text : past === '' ? `${text} ago` : past + text;
};

export const formatDuration = (ms: number): string =>
  ms < 1_000
    ? `${Math.round(ms)} ms`
    : ms < 60_000
      ? `${(ms / 1_000).toFixed(1)} s`
      : ms < 3_600_000
        ? `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
        : `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;

export const formatBytes = (bytes: number): string =>
  bytes < 1_024
    ? `${bytes} B`
    : bytes < 1_048_576
      ? `${(bytes / 1_024).toFixed(1)} KiB`
      : `${(bytes / 1_048_576).toFixed(1)} MiB`;

/** Shortens an id to its first part. The whole id is in the title. */
export const shortId = (id: string): string => (/^[0-9a-f]{8}-/.test(id) ? id.slice(0, 8) : id);

/** `TurnRequested` → `turn requested`. */
export const wordsOfType = (type: string): string =>
  type.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();

/** `1 agent`, `2 agents`. */
export const countOf = (count: number, noun: string): string =>
  `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`;
