import { parseCapability } from '@antiphon/config';
import type { Capability } from '@antiphon/config';

/** Host functions of a plug-in, by the types of its capabilities. */
export interface GrantedFunctions {
  readonly http: boolean;
  readonly store: boolean;
  readonly clock: boolean;
  readonly random: boolean;
}

const parsedOf = (capabilities: readonly string[]): Capability[] =>
  capabilities.flatMap((text) => {
    const parsed = parseCapability(text);
    return parsed.ok ? [parsed.capability] : [];
  });

/** Returns why a plug-in's capabilities cannot be granted, or null when they can. */
export const explainUngrantable = (capabilities: readonly string[]): string | null => {
  for (const text of capabilities) {
    const parsed = parseCapability(text);
    if (parsed.ok) continue;
    const hint = parsed.nearest ? `; did you mean ${parsed.nearest}?` : '';
    return `capability ${text}: ${parsed.message}${hint}`;
  }
  const types = new Set(parsedOf(capabilities).map(({ type }) => type));
  if (types.has('secret') && !types.has('http'))
    return 'a capability secret:NAME needs one http:HOST, whose requests the secret is for';
  return null;
};

/**
 * Returns the parts of the web that a plug-in may request: `HOST[:PORT][/PATH]` of each `http:`
 * capability, with the host in lower case.
 */
export const grantedHosts = (capabilities: readonly string[]): ReadonlySet<string> =>
  new Set(
    parsedOf(capabilities).flatMap((one) => {
      if (one.type !== 'http') return [];
      const port = one.port === null ? '' : `:${one.port}`;
      return [`${one.host}${port}${one.path === '/' ? '' : one.path}`];
    }),
  );

/** Returns the names of the stores, or of the secrets, that a plug-in was granted. */
export const grantedNames = (
  capabilities: readonly string[],
  type: 'store' | 'secret',
): ReadonlySet<string> =>
  new Set(parsedOf(capabilities).flatMap((one) => (one.type === type ? [one.name] : [])));

/** Returns which host functions a plug-in may import. */
export const grantedFunctions = (capabilities: readonly string[]): GrantedFunctions => {
  const types = new Set(parsedOf(capabilities).map(({ type }) => type));
  const has = (type: Capability['type']): boolean => types.has(type);
  return { http: has('http'), store: has('store'), clock: has('clock'), random: has('random') };
};
