import { BUNDLED_CHANNELS } from './channel.schema.js';
import { findNearest } from './find-nearest.js';
import { entriesOf, textOf } from './problem-list.js';
import type { Entry, ProblemList } from './problem-list.js';
import type { TomlData } from './toml-value.js';

type File = Readonly<Record<string, TomlData>>;

/** Channels of sessions that the runtime creates itself. */
export const RESERVED_CHANNELS: ReadonlySet<string> = new Set([
  'task',
  'run',
  'plan',
  'fork',
  'chat',
  'agent',
]);

/** Bundled plug-ins whose platforms are not asked for deliveries. */
const WEBHOOK_ONLY: Readonly<Record<string, string>> = {
  mock: 'it has no platform that could be asked',
  slack: 'the socket mode of Slack is not available in this version',
  discord: 'the gateway of Discord is not available in this version',
  whatsapp: 'WhatsApp sends deliveries only',
};

const checkPlugin = (list: ProblemList, { table, path }: Entry, plugins: readonly Entry[]): void => {
  const plugin = textOf(table, 'plugin') ?? textOf(table, 'name') ?? '';
  const key = table['plugin'] === undefined ? path : [...path, 'plugin'];
  const configured = plugins.find((one) => textOf(one.table, 'name') === plugin);
  if (configured !== undefined && textOf(configured.table, 'kind') !== 'channel')
    list.add(key, { message: `the plug-in ${plugin} is not of the kind channel` });
  if (configured !== undefined || BUNDLED_CHANNELS.includes(plugin)) return;
  const names = plugins.filter((one) => textOf(one.table, 'kind') === 'channel');
  const known = [...BUNDLED_CHANNELS, ...names.map((one) => textOf(one.table, 'name') ?? '')];
  list.add(key, {
    message: `there is no plug-in ${JSON.stringify(plugin)} for channels`,
    expected: `plugin with one of ${known.join(', ')}`,
    example: 'plugin = "telegram"',
    nearest: findNearest(plugin, known),
  });
};

const checkConnection = (list: ProblemList, { table, path }: Entry): void => {
  const plugin = textOf(table, 'plugin') ?? textOf(table, 'name') ?? '';
  const reason = WEBHOOK_ONLY[plugin];
  if (textOf(table, 'connection') === 'polling' && reason !== undefined)
    list.add([...path, 'connection'], {
      message: `the plug-in ${plugin} cannot be used with polling: ${reason}`,
      example: 'connection = "webhook"',
    });
  if (plugin === 'discord' && table['public_key'] === undefined && textOf(table, 'connection') !== 'socket')
    list.add(path, {
      message: 'public_key is missing; the plug-in discord checks signatures with it',
      example: 'public_key = "the-public-key-of-the-application"',
    });
};

const checkAddress = (list: ProblemList, { table, path }: Entry): void => {
  const text = textOf(table, 'base_url');
  if (text === null) return;
  const url = URL.parse(text);
  const isUsable = url !== null && ['http:', 'https:'].includes(url.protocol);
  if (isUsable && url.username === '' && url.password === '' && url.hash === '' && url.search === '') return;
  list.add([...path, 'base_url'], {
    message: 'not an http or https URL without credentials and query (not shown)',
  });
};

/** Checks that each channel has a plug-in, a usable address and a name of its own. */
export const checkChannels = (list: ProblemList, file: File): void => {
  const plugins = entriesOf(file, 'plugins');
  for (const entry of entriesOf(file, 'channels')) {
    const name = textOf(entry.table, 'name') ?? '';
    if (RESERVED_CHANNELS.has(name))
      list.add([...entry.path, 'name'], {
        message: `"${name}" is reserved for sessions of the runtime`,
        expected: 'another name',
        example: 'name = "telegram"',
      });
    checkPlugin(list, entry, plugins);
    checkConnection(list, entry);
    checkAddress(list, entry);
  }
};
