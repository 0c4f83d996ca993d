import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../output.js';
import { readSecret } from './read-secret.js';

const list = async ({ output, http }: CommandContext): Promise<void> => {
  const page = await (await http()).listChannels();
  const lines = page.channels.map(
    ({ name, plugin, connection, status, problem, secrets, pairedPeers }) =>
      `${name.padEnd(20)} ${plugin.padEnd(12)} ${connection.padEnd(8)} ${status.padEnd(11)} ` +
      `secrets ${secrets.join(', ') || 'none'}, ${pairedPeers} paired${problem === null ? '' : `: ${problem}`}`,
  );
  output.result(page, lines.length === 0 ? 'no channel is configured' : lines.join('\n'));
};

interface ConnectOptions {
  readonly tokenStdin?: boolean;
  readonly secretStdin?: boolean;
  readonly verifyStdin?: boolean;
  readonly file?: string;
}

const connect = async (
  { output, http, cwd }: CommandContext,
  channel: string,
  options: ConnectOptions,
): Promise<void> => {
  const name = options.secretStdin ? 'secret' : options.verifyStdin ? 'verify' : 'token';
  const body = { secret: readSecret(cwd, options.file) };
  const view = await (await http()).connectChannel({ params: { channel, name }, body });
  output.result(view, `${channel}: ${name} stored, encrypted`);
};

const pair = async ({ output, http }: CommandContext, channel: string): Promise<void> => {
  const reply = await (await http()).createPairingCode({ params: { channel } });
  output.result(reply, `${reply.code}  valid until ${reply.expiresAt}: the peer sends it as a message`);
};

const peers = async ({ output, http }: CommandContext, channel: string): Promise<void> => {
  const page = await (await http()).listPeers({ params: { channel } });
  const lines = page.peers.map(
    ({ peer, state, by, at }) => `${peer.padEnd(24)} ${state.padEnd(8)} ${at}  by ${by}`,
  );
  output.result(page, lines.length === 0 ? 'no peer is paired or blocked' : lines.join('\n'));
};

type Action = 'pair' | 'unpair' | 'block';
const PAST = { pair: 'paired', unpair: 'unpaired', block: 'blocked' } as const;

const change = async (
  { output, http }: CommandContext,
  channel: string,
  peer: string,
  action: Action,
): Promise<void> => {
  const reply = await (await http()).changePeer({ params: { channel, peer }, body: { action } });
  output.result(reply, `${peer}: ${reply.changed ? PAST[action] : 'unchanged'}`);
};

interface ListOptions {
  readonly channel?: string;
  readonly limit?: string;
}

const deliveries = async (
  { output, http }: CommandContext,
  { channel, limit }: ListOptions,
  state?: 'dead',
): Promise<void> => {
  const query = {
    ...(channel === undefined ? {} : { channel }),
    ...(state === undefined ? {} : { state }),
    ...(limit === undefined ? {} : { limit: Number(limit) }),
  };
  const page = await (await http()).listDeliveries({ query });
  const lines = page.deliveries.map(
    ({ messageId, channel: name, peer, state: shown, code, attempts, changedAt }) =>
      `${messageId}  ${name} ${peer ?? '-'}  ${shown} ${code ?? ''} after ${attempts} attempts  ${changedAt}`,
  );
  output.result(page, lines.length === 0 ? 'there are none' : lines.join('\n'));
};

const replay = async ({ output, http }: CommandContext, id: string): Promise<void> => {
  const delivery = await (await http()).replayDelivery({ params: { id } });
  output.result(delivery, `${id}: ${delivery.state}`);
};

const EXAMPLES = `
Examples:
  antiphon channel connect telegram --token-stdin < ./bot.token
  antiphon channel connect telegram --secret-stdin < ./webhook.secret
  antiphon channel pair telegram
  antiphon channel block telegram 4711
  antiphon channel dead-letters
  antiphon channel replay 0192f0c1-7a2b-5c3d-8e4f-000000000071`;

const addPeerActions = (channel: Command, context: ContextOf): void => {
  for (const action of ['unpair', 'block'] as const)
    channel
      .command(`${action} <channel> <peer>`)
      .description(action === 'block' ? 'refuse all messages of a peer' : 'forget a paired or blocked peer')
      .action((name: string, peer: string, _: unknown, command: Command) =>
        change(context(command), name, peer, action),
      );
  channel
    .command('pair <channel> [peer]')
    .description('create a code that pairs the peer who sends it, or pair a known peer')
    .action((name: string, peer: string | undefined, _: unknown, command: Command) =>
      peer === undefined ? pair(context(command), name) : change(context(command), name, peer, 'pair'),
    );
  channel
    .command('peers <channel>')
    .description('list the paired and the blocked peers')
    .action((name: string, _: unknown, command: Command) => peers(context(command), name));
};

const addDeliveries = (channel: Command, context: ContextOf): void => {
  const paged = (command: Command): Command =>
    command.option('--channel <name>', 'only of this channel').option('--limit <n>', 'at most this many');
  paged(channel.command('deliveries'))
    .description('list deliveries and the state of their replies, newest first')
    .action((options: ListOptions, command: Command) => deliveries(context(command), options));
  paged(channel.command('dead-letters'))
    .description('list replies that failed or whose outcome is unknown')
    .action((options: ListOptions, command: Command) => deliveries(context(command), options, 'dead'));
  channel
    .command('replay <id>')
    .description('send the reply of a dead letter again')
    .action((id: string, _: unknown, command: Command) => replay(context(command), id));
};

/** Adds `antiphon channel list|connect|pair|peers|unpair|block|deliveries|dead-letters|replay`. */
export const addChannel = (program: Command, context: ContextOf): void => {
  const channel = program
    .command('channel')
    .description('connect messengers and platforms by which people reach agents')
    .addHelpText('after', EXAMPLES);
  channel
    .command('list')
    .description('list the configured channels')
    .action((_: unknown, command: Command) => list(context(command)));
  channel
    .command('connect <channel>')
    .description('store a secret of a channel, from standard input or a file')
    .option('--token-stdin', 'the token of outgoing calls (default)')
    .option('--secret-stdin', 'the secret of signatures, or the one that the platform sends')
    .option('--verify-stdin', 'the token with which Meta confirms a subscription')
    .option('--file <path>', 'read it from this file')
    .addHelpText('after', EXAMPLES)
    .action((name: string, options: ConnectOptions, command: Command) =>
      connect(context(command), name, options),
    );
  addPeerActions(channel, context);
  addDeliveries(channel, context);
};
