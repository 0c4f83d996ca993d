/**
 * A placeholder, as a plug-in writes it, or as a parsed URL has it in its path. Its name has the
 * form of a capability's.
 */
const PLACEHOLDER = /(?:\{|%7B)secret:([a-z0-9][a-z0-9_-]{0,62})(?:\}|%7D)/gi;

/** Values of secrets by their names. */
export type SecretValues = ReadonlyMap<string, string>;

/** Returns the names of the secrets that texts ask for, each once. */
export const findSecretNames = (texts: readonly string[]): string[] => [
  ...new Set(
    texts.flatMap((text) => [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name.toLowerCase())),
  ),
];

/** Inserts values. A name without one keeps its placeholder. */
export const fillSecrets = (
  text: string,
  values: SecretValues,
  encode: (value: string) => string = (value) => value,
): string =>
  text.replace(PLACEHOLDER, (mark, name: string) => {
    const value = values.get(name.toLowerCase());
    return value === undefined ? mark : encode(value);
  });
