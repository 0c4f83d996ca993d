import pg from 'pg';
import { UserError } from '@antiphon/bootstrap/user-error';
import { awaitNatsGreeting } from './nats.js';
import { ensureNamespace } from './temporal-namespace.js';

const unreachable = (variable: string, address: string, error: unknown): UserError =>
  new UserError(
    `${variable} points at ${address}, which cannot be used: ${error instanceof Error ? error.message : String(error)}.\n` +
      `What to do: start it, correct the address, or unset ${variable} so that one is started here.`,
    { exitCode: 2, cause: error },
  );

const parseUrl = (variable: string, value: string): URL => {
  try {
    return new URL(value);
  } catch (error) {
    throw unreachable(variable, 'something that is not a URL', error);
  }
};

/** A URL's host and port, without credentials. */
export const addressOfUrl = (value: string, usualPort: number): string => {
  const { hostname, port } = new URL(value);
  return `${hostname}:${port === '' ? usualPort : port}`;
};

/** Proves that a PostgreSQL that somebody else runs takes our connection. */
export const checkExternalDatabase = async (url: string): Promise<void> => {
  parseUrl('ANTIPHON_DATABASE_URL', url);
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  try {
    await client.connect();
    await client.query('select 1');
  } catch (error) {
    throw unreachable('ANTIPHON_DATABASE_URL', addressOfUrl(url, 5432), error);
  } finally {
    await client.end().catch(() => undefined);
  }
};

export interface NatsAddress {
  /** Without credentials. */
  readonly url: string;
  readonly user?: string;
  readonly password?: string;
}

/** Proves that there is a NATS server, and takes the credentials out of its URL. */
export const checkExternalNats = async (value: string): Promise<NatsAddress> => {
  const url = parseUrl('ANTIPHON_NATS_URL', value);
  try {
    await awaitNatsGreeting(url.hostname, Number(url.port === '' ? 4222 : url.port), 5_000);
  } catch (error) {
    throw unreachable('ANTIPHON_NATS_URL', addressOfUrl(value, 4222), error);
  }
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  url.username = '';
  url.password = '';
  return { url: url.href.replace(/\/$/, ''), ...(user ? { user, password: password ?? '' } : {}) };
};

/** Proves that there is a Temporal, with our namespace in it (made if it is missing). */
export const checkExternalTemporal = async (address: string): Promise<void> => {
  try {
    await ensureNamespace(address);
  } catch (error) {
    throw unreachable('ANTIPHON_TEMPORAL_ADDRESS', address, error);
  }
};
