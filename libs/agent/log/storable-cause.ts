import type { Cause } from '@antiphon/contracts/causes';
import { toStorable } from '@antiphon/kernel';

/** Returns the cause with fields that the log can hold: storable and clipped texts. */
export const storableCause = (cause: Cause, clip: (text: string) => string): Cause => {
  const fields = Object.entries(cause).map(([name, field]: [string, unknown]) => {
    if (typeof field === 'string') return [name, clip(toStorable(field))];
    return [name, field !== null && typeof field === 'object' ? storableCause(field as Cause, clip) : field];
  });
  return Object.fromEntries(fields) as Cause;
};
