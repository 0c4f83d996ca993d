const CLOCK = /^(\d{1,2}):(\d{2})$/;
const TIME = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?$/i;

/**
 * Returns the time that a person typed after `@`, in the zone of the browser. It is a date, a date
 * with a time, or a time of today. Null for any other text.
 */
export const parseTime = (text: string, now: Date): Date | null => {
  const typed = text.trim();
  const clock = CLOCK.exec(typed);
  if (clock) {
    const [hours, minutes] = [Number(clock[1]), Number(clock[2])];
    if (hours > 23 || minutes > 59) return null;
    const time = new Date(now);
    time.setHours(hours, minutes, 59, 999);
    return time;
  }
  if (!TIME.test(typed)) return null;
  // A date alone is its end: what was true on that day.
  const [date = '', hour] = typed.split(/[T ]/i);
  const time = new Date(hour === undefined ? `${date}T23:59:59.999` : `${date}T${hour.padStart(5, '0')}`);
  return Number.isNaN(time.getTime()) ? null : time;
};
