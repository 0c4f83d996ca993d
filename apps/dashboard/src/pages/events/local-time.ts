const MINUTE_MS = 60_000;

/** Returns a time as the value of a `datetime-local` input; empty for another text. */
export const toLocalTime = (text: string): string => {
  const time = new Date(text);
  if (text === '' || Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 19);
};

/** Returns the value of a `datetime-local` input in UTC; empty for an empty one. */
export const fromLocalTime = (value: string): string => {
  const time = new Date(value);
  return value === '' || Number.isNaN(time.getTime()) ? '' : time.toISOString();
};
