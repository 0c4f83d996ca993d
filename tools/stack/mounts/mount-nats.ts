import { writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { addressOfUrl, checkExternalNats } from '../engines/external-engines.js';
import type { NatsAddress } from '../engines/external-engines.js';
import { NATS_OPERATOR } from '../engines/nats-config.js';
import { natsEngine } from '../engines/nats.js';
import { superviseProcess } from '../process/supervised-process.js';
import { externalEntry, managedEntry } from './mounted-engine.js';
import type { EngineSource, MountedEngine, MountOptions } from './mounted-engine.js';

export interface MountedNats extends MountedEngine {
  /** The address with the credential of one service, or of the operator, who may do anything. */
  accessFor(user: ServiceName | typeof NATS_OPERATOR): NatsAddress;
}

/** For people and tools: `{url, users: {agent: {user, password}, …, operator: …}}`. */
const writeUsers = ({ context }: MountOptions, accessFor: MountedNats['accessFor']): void => {
  const users = [NATS_OPERATOR, ...SERVICES] as const;
  writeJsonAtomic(context.paths.natsUsersFile, {
    url: accessFor(NATS_OPERATOR).url,
    users: Object.fromEntries(
      users.map((name) => [name, { user: accessFor(name).user, password: accessFor(name).password }]),
    ),
  });
};

const mountOurs = (options: MountOptions, program: ResolvedEngine): MountedNats => {
  const { context, hooks, progress } = options;
  const engine = natsEngine(context, program);
  const process = superviseProcess(engine.spec, hooks);
  const accessFor: MountedNats['accessFor'] = (user) => ({
    url: `nats://127.0.0.1:${process.status().port ?? 0}`,
    user,
    password:
      user === NATS_OPERATOR ? context.credentials.natsOperator : context.credentials.services[user].nats,
  });
  return {
    process,
    accessFor,
    entry: () => managedEntry(process, engine.version, 'nats://'),
    start: async () => {
      await progress.step('NATS: starting it', () => process.start());
      writeUsers(options, accessFor);
    },
  };
};

const mountTheirs = (options: MountOptions, value: string): MountedNats => {
  let address: NatsAddress = { url: value };
  const accessFor = (): NatsAddress => address;
  return {
    process: null,
    accessFor,
    entry: () => externalEntry(`nats://${addressOfUrl(value, 4222)}`),
    start: async () => {
      address = await checkExternalNats(value);
      writeUsers(options, accessFor);
    },
  };
};

/** NATS with JetStream. Ours has one user for each service; somebody else's is used with the credentials of its URL. */
export const mountNats = (options: MountOptions, source: EngineSource): MountedNats =>
  source.program === undefined ? mountTheirs(options, source.external) : mountOurs(options, source.program);
