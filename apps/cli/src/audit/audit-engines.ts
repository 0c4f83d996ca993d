import { existsSync, readFileSync } from 'node:fs';
import type { AuditReport } from '@antiphon/audit-features';
import type { LiveAuditOptions } from '@antiphon/audit-features/live';
import { invalid } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { readStack } from '@antiphon/stack';
import { homeOf } from '../connection/gateway-address.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where NATS and Temporal are, and the operator's password for NATS. */
export interface EngineAddresses {
  readonly nats: { readonly url: string; readonly user: string; readonly password: string };
  /** `host:port` of the frontend's gRPC. */
  readonly temporal: string;
}

const OPERATOR = 'operator';

const operatorIn = (file: string): EngineAddresses['nats'] | null => {
  if (!existsSync(file)) return null;
  const { url, users } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly url: string;
    readonly users: Readonly<Record<string, Omit<EngineAddresses['nats'], 'url'>>>;
  };
  const operator = users[OPERATOR];
  return operator === undefined ? null : { url, ...operator };
};

/** As the operator: `ANTIPHON_NATS_URL` and `ANTIPHON_OPERATOR_NATS_PASSWORD`, else NATS of this home's stack, else null. */
export const findNats = (env: Environment, cwd: string): EngineAddresses['nats'] | null => {
  const stack = readStack(homeOf(env, cwd));
  const url = env['ANTIPHON_NATS_URL'];
  const password = env['ANTIPHON_OPERATOR_NATS_PASSWORD'] ?? '';
  if (url) return { url, user: OPERATOR, password };
  return stack && operatorIn(stack.credentials.natsUsersFile);
};

/** `ANTIPHON_NATS_URL`, `ANTIPHON_OPERATOR_NATS_PASSWORD` and `ANTIPHON_TEMPORAL_ADDRESS`, else those of this home's stack. */
export const findEngines = (env: Environment, cwd: string): EngineAddresses => {
  const home = homeOf(env, cwd);
  const stack = readStack(home);
  const nats = findNats(env, cwd);
  const temporal = env['ANTIPHON_TEMPORAL_ADDRESS'] || stack?.engines.temporal.address;
  if (nats && temporal) return { nats, temporal };
  throw invalid(
    'CLI.USAGE',
    `--live needs NATS and Temporal, and no stack runs in ${home}. What to do: start it with \`npm start\`, or name them with ANTIPHON_NATS_URL, ANTIPHON_OPERATOR_NATS_PASSWORD and ANTIPHON_TEMPORAL_ADDRESS`,
  );
};

/** Connects as the operator. The library is loaded here: most commands do not need it. */
export const connectOperator = async (nats: EngineAddresses['nats'], name: string): Promise<NatsLink> => {
  const { connectNats } = await import('@antiphon/messaging');
  const options = { ...nats, service: OPERATOR, name, logger: silentLogger };
  return connectNats({ ...options, connectTimeoutMs: CONNECT_MS });
};

/** How long the first connection may take: an audit that hangs says nothing. */
const CONNECT_MS = 5_000;

/** Adds to a report of the log what the engines show. Their libraries are loaded here: no other audit needs them. */
export const auditEngines = async (
  { nats, temporal }: EngineAddresses,
  options: Pick<LiveAuditOptions, 'pool' | 'strictQuiesced' | 'onProgress'>,
  report: AuditReport,
): Promise<AuditReport> => {
  const [{ auditLive, withLive }, { openTemporal }] = await Promise.all([
    import('@antiphon/audit-features/live'),
    import('@antiphon/temporal/link'),
  ]);
  const link = await connectOperator(nats, 'antiphon-audit');
  const waiting = openTemporal(temporal);
  try {
    const live = await auditLive({
      ...options,
      nats: link.connection,
      temporal: waiting,
      after: report.since,
    });
    return withLive(report, live);
  } finally {
    await Promise.all([link.drain(), waiting.close()]);
  }
};
