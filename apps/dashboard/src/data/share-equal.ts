type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const shareArray = (before: readonly unknown[], next: readonly unknown[]): readonly unknown[] => {
  const shared = next.map((value, index) => shareEqual(before[index], value));
  const isSame = before.length === next.length && shared.every((value, index) => value === before[index]);
  return isSame ? before : shared;
};

const shareFields = (before: Fields, next: Fields): Fields => {
  const names = Object.keys(next);
  // Own fields only: a name of a field may be that of a method.
  const shared = names.map(
    (name) => [name, shareEqual(Object.hasOwn(before, name) ? before[name] : undefined, next[name])] as const,
  );
  const isSame =
    names.length === Object.keys(before).length &&
    shared.every(([name, value]) => Object.hasOwn(before, name) && value === before[name]);
  return isSame ? before : Object.fromEntries(shared);
};

/**
 * Returns the next JSON value. Parts that equal those of the value before are the same objects, so
 * that React draws only what changed.
 */
export const shareEqual = (before: unknown, next: unknown): unknown => {
  if (Object.is(before, next)) return before;
  if (Array.isArray(before) && Array.isArray(next)) return shareArray(before, next);
  return isFields(before) && isFields(next) ? shareFields(before, next) : next;
};
