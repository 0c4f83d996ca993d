const KNOWN_TYPES = ['http', 'store'];

/**
 * Says why a plug-in's capabilities cannot be granted, or null when they can. The configuration has refused
 * unknown types already; a type that is known but has no host behind it yet is refused here, not stubbed.
 */
export const ungrantable = (capabilities: readonly string[]): string | null => {
  for (const capability of capabilities) {
    const type = capability.split(':', 1)[0] ?? '';
    if (!KNOWN_TYPES.includes(type)) return `capability ${capability}: unknown type "${type}"`;
    return `capability ${capability}: ${type} is not available yet`;
  }
  return null;
};
