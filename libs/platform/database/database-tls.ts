import { invalid } from '@antiphon/kernel';

type Environment = Readonly<Record<string, string | undefined>>;

/** Parameters of libpq that a connection string may have. */
const PARAMETERS = {
  sslmode: 'ANTIPHON_DATABASE_SSLMODE',
  sslrootcert: 'ANTIPHON_DATABASE_CA_FILE',
  sslcert: 'ANTIPHON_DATABASE_CERT_FILE',
  sslkey: 'ANTIPHON_DATABASE_KEY_FILE',
} as const;

const MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'];

/**
 * Returns the address of PostgreSQL with the TLS settings of the environment. A setting in the
 * address itself wins. A CA without a mode means `verify-full`. The modes have libpq's meaning:
 * `require` without a CA encrypts, and does not verify the server. Throws
 * `SERVICE.BAD_ENVIRONMENT`.
 */
export const withDatabaseTls = (url: string, env: Environment): string => {
  const given = Object.entries(PARAMETERS).flatMap(([name, variable]) => {
    const value = env[variable];
    return value ? [[name, value] as const] : [];
  });
  const mode = env[PARAMETERS.sslmode];
  if (mode && !MODES.includes(mode))
    throw invalid('SERVICE.BAD_ENVIRONMENT', `${PARAMETERS.sslmode} is one of ${MODES.join(', ')}`);
  if (given.length === 0 || !URL.canParse(url)) return url;
  const parsed = new URL(url);
  if (parsed.searchParams.has('sslmode')) return url;
  const known = new Map<string, string>(given);
  if (!known.has('sslmode')) known.set('sslmode', 'verify-full');
  const added = [...known, ['uselibpqcompat', 'true'] as const]
    .filter(([name]) => !parsed.searchParams.has(name))
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  // URLSearchParams would write a blank of other options as `+`, which is a plus sign there.
  parsed.search = [parsed.search.slice(1), ...added].filter(Boolean).join('&');
  return parsed.href;
};
