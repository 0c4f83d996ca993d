const HTTP = 'http:';
const NOT_YET = ['store'];

/**
 * Says why a plug-in's capabilities cannot be granted, or null when they can. The configuration has refused
 * unknown types already; a type that is known but has no host behind it yet is refused here, not stubbed.
 */
export const ungrantable = (capabilities: readonly string[]): string | null => {
  for (const capability of capabilities) {
    if (capability.startsWith(HTTP)) continue;
    const type = capability.split(':', 1)[0] ?? '';
    if (NOT_YET.includes(type)) return `capability ${capability}: ${type} is not available yet`;
    return `capability ${capability}: unknown type "${type}"`;
  }
  return null;
};

/** The hosts that a plug-in may ask, from its `http:HOST` capabilities, in lower case. */
export const grantedHosts = (capabilities: readonly string[]): ReadonlySet<string> =>
  new Set(
    capabilities
      .filter((capability) => capability.startsWith(HTTP))
      .map((capability) => capability.slice(HTTP.length).toLowerCase()),
  );
