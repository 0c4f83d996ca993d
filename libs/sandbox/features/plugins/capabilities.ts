import { parseCapability } from '@antiphon/config';

/**
 * Returns why a plug-in's capabilities cannot be granted, or null when they can. The configuration
 * has refused unknown types already. A known type without an implementation is refused here.
 */
export const explainUngrantable = (capabilities: readonly string[]): string | null => {
  for (const text of capabilities) {
    const parsed = parseCapability(text);
    if (!parsed.ok) return `capability ${text}: ${parsed.message}`;
    const { type } = parsed.capability;
    if (type !== 'http') return `capability ${text}: ${type} is not available yet`;
  }
  return null;
};

/** Returns the hosts of a plug-in's `http:HOST` capabilities, in lower case. */
export const grantedHosts = (capabilities: readonly string[]): ReadonlySet<string> =>
  new Set(
    capabilities.flatMap((text) => {
      const parsed = parseCapability(text);
      return parsed.ok && parsed.capability.type === 'http' ? [parsed.capability.host] : [];
    }),
  );
