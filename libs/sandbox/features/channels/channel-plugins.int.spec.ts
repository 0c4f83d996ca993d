import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connect } from 'node:net';
import type { ChannelConfig } from '@antiphon/config';
import type { EgressPorts } from '../http/fetch-page.js';
import { bundledPlugins, startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';
import type { ChannelSends } from './channel-sends.js';
import { ChannelHandlers } from './channels.handler.js';

jest.setTimeout(60_000);

const NAMES = ['mock', 'telegram', 'slack', 'discord', 'whatsapp'];
const TOKEN = '123456:canary-token-of-the-bot';
const dialled: string[] = [];
const resolved: string[] = [];
let addresses = ['127.0.0.1'];
const egress: EgressPorts = {
  resolve: (host) => {
    resolved.push(host);
    return Promise.resolve(addresses);
  },
  dial: ({ address, port }) => {
    dialled.push(`${address}:${port}`);
    return connect({ host: '127.0.0.1', port: 1 });
  },
};

let box: TestSandbox;
let handlers: ChannelHandlers;
beforeAll(async () => {
  const channels = NAMES.map((plugin) => ({ plugin })) as unknown as ChannelConfig[];
  box = await startSandbox([], {}, { bundledDirectory: await bundledPlugins(), channels, egress });
  // No request of this spec is an attempt that may be settled.
  handlers = new ChannelHandlers(box.sandbox, {} as ChannelSends);
});
afterAll(() => box?.close());

const run = async (
  plugin: string,
  entry: 'parse_incoming' | 'format_outgoing',
  input: unknown,
  settings: Record<string, string> = {},
): Promise<unknown> => {
  const bytes = Buffer.from(typeof input === 'string' ? input : JSON.stringify(input), 'utf8');
  const reply = await handlers.run({ plugin, entry, input: bytes.toString('base64'), settings });
  if (reply.outcome === 'failed') return reply;
  return JSON.parse(reply.output);
};
const parse = (plugin: string, input: unknown, settings?: Record<string, string>) =>
  run(plugin, 'parse_incoming', input, settings);
/** Returns a request with its body as JSON. */
const format = async (plugin: string, input: object): Promise<unknown> => {
  const request = (await run(plugin, 'format_outgoing', {
    ...{ mode: 'request', text: 'a <b> & "c"\n😀', part: 0, parts: 1, peer: '4711', reply_to: {}, ...input },
  })) as { readonly body?: string };
  return request.body === undefined ? request : { ...request, body: JSON.parse(request.body) as unknown };
};

describe('the bundled plug-ins for channels', () => {
  // @shows O1
  it.each(NAMES)('%s describes itself', async (plugin) => {
    expect(await handlers.describe({ plugin })).toMatchObject({ found: true, plugin: { name: plugin } });
  });

  it('are no tools, and a tool is no channel', async () => {
    expect(box.view('telegram')).toMatchObject({ kind: 'channel', tools: [] });
    expect(await handlers.describe({ plugin: 'echo' })).toMatchObject({ found: false });
    expect(await parse('echo', {})).toMatchObject({ outcome: 'failed', code: 'CHANNEL.PLUGIN_MISSING' });
  });

  it.each(NAMES)('%s fails for bytes that are no JSON object', async (plugin) => {
    for (const input of ['', '[', '"x"', '\u0000\u00ff', '{"a":'])
      expect(await parse(plugin, input)).toMatchObject({ outcome: 'failed' });
  });
});

describe('telegram', () => {
  // https://core.telegram.org/bots/webhooks#testing-your-bot-with-updates
  const update = {
    update_id: 10000,
    message: {
      date: 1441645532,
      chat: {
        last_name: 'Test Lastname',
        id: 1111111,
        first_name: 'Test',
        username: 'Test',
        type: 'private',
      },
      message_id: 1365,
      from: { last_name: 'Test Lastname', id: 1111111, first_name: 'Test', username: 'Test' },
      text: 'Grüße \u{1f600}',
    },
  };

  // @shows A10 O1
  it('reads the documented update', async () =>
    expect(await parse('telegram', update)).toEqual({
      messages: [
        {
          ...{ delivery_id: '10000', peer: '1111111', text: 'Grüße \u{1f600}', reply_to: {} },
          sender: { id: '1111111', name: 'Test', is_bot: false },
        },
      ],
    }));

  it('reads captions, files, topics and commands, and no edits and stickers', async () => {
    const message = {
      ...update.message,
      text: undefined,
      caption: 'see',
      photo: [{ file_id: 's' }, { file_id: 'l' }],
    };
    expect(await parse('telegram', { update_id: 1, message })).toMatchObject({
      messages: [{ text: 'see', attachments: [{ kind: 'photo', id: 'l' }] }],
    });
    const topic = { ...update.message, is_topic_message: true, message_thread_id: 7, text: '/new@mybot' };
    expect(await parse('telegram', { update_id: 2, message: topic })).toMatchObject({
      messages: [{ thread: '7', text: '/new' }],
    });
    const link = { ...update.message, text: '/start K7Q2M9XWPA' };
    expect(await parse('telegram', { update_id: 3, message: link })).toMatchObject({
      messages: [{ text: 'K7Q2M9XWPA' }],
    });
    const sticker = { ...update.message, sticker: {} };
    for (const other of [{ message: sticker }, { edited_message: update.message }, { poll: {} }])
      expect(await parse('telegram', { update_id: 4, ...other })).toEqual({ messages: [] });
  });

  it('writes sendMessage with the placeholder of the token', async () =>
    expect(await format('telegram', { thread: '7' })).toEqual({
      ...{ method: 'POST', url: '/bot{token}/sendMessage', headers: { 'content-type': 'application/json' } },
      body: { chat_id: '4711', text: 'a <b> & "c"\n😀', message_thread_id: 7 },
    }));
});

describe('slack', () => {
  // https://docs.slack.dev/apis/events-api
  const callback = (event: object) => ({
    ...{ token: 'z26uFbvR1xHJEdHE1OQiO6t8', team_id: 'T123ABC456', api_app_id: 'A123ABC456' },
    event: { user: 'U123ABC456', ts: '1355517523.000005', channel: 'C123ABC456', ...event },
    ...{ type: 'event_callback', event_id: 'Ev123ABC456', event_time: 1355517523 },
    authorizations: [{ team_id: 'T123ABC456', user_id: 'UBOT', is_bot: true }],
  });

  it('answers the challenge', async () =>
    expect(
      await parse('slack', {
        token: 'x',
        challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P',
        type: 'url_verification',
      }),
    ).toEqual({
      respond: {
        content_type: 'application/json',
        body: '{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}',
      },
      messages: [],
    }));

  it('reads a mention and the message event of it as one delivery, in the thread of it', async () => {
    const text = '<@UBOT> a &lt;b&gt; &amp; c';
    const mention = await parse('slack', callback({ type: 'app_mention', text }));
    expect(mention).toEqual({
      messages: [
        {
          ...{
            delivery_id: 'C123ABC456:1355517523.000005',
            peer: 'C123ABC456',
            text: 'a <b> & c',
            reply_to: {},
          },
          sender: { id: 'U123ABC456', is_bot: false },
          ...{ team: 'T123ABC456', thread: '1355517523.000005' },
        },
      ],
    });
    expect(await parse('slack', callback({ type: 'message', channel_type: 'channel', text }))).toEqual(
      mention,
    );
    const other = callback({ type: 'message', channel_type: 'channel', text: 'not for the app' });
    expect(await parse('slack', other)).toEqual({ messages: [] });
  });

  it('marks messages of bots, and ignores edits', async () => {
    const im = { type: 'message', channel_type: 'im', text: 'hi' };
    expect(await parse('slack', callback({ ...im, bot_id: 'B1' }))).toMatchObject({
      messages: [{ sender: { is_bot: true } }],
    });
    expect(await parse('slack', callback({ ...im, subtype: 'message_changed' }))).toEqual({ messages: [] });
  });

  it('reads a slash command, which is a form', async () => {
    const form =
      'token=gIkuvaNzQIHg97ATvDxqgjtO&team_id=T0001&channel_id=C2147483705&user_id=U2147483697&user_name=Steve&command=%2Fweather&text=94070+%26+m%C3%BCnchen&trigger_id=13345224609.738474920.8088930838d88f008e0';
    const settings = { content_type: 'application/x-www-form-urlencoded' };
    expect(await parse('slack', form, settings)).toMatchObject({
      messages: [
        {
          ...{
            delivery_id: '13345224609.738474920.8088930838d88f008e0',
            peer: 'C2147483705',
            kind: 'command',
          },
          ...{ text: '94070 & münchen', team: 'T0001', sender: { id: 'U2147483697', name: 'Steve' } },
        },
      ],
    });
  });

  it('escapes its texts, and answers in the thread', async () =>
    expect(await format('slack', { peer: 'C1', thread: '1.2' })).toMatchObject({
      ...{ url: '/chat.postMessage', headers: { authorization: 'Bearer {token}' } },
      body: { channel: 'C1', text: 'a &lt;b&gt; &amp; "c"\n😀', thread_ts: '1.2' },
    }));
});

describe('discord', () => {
  // https://docs.discord.com/developers/interactions/receiving-and-responding
  const interaction = {
    ...{
      type: 2,
      id: '786008729715212338',
      application_id: '845027738276462632',
      channel_id: '645027906669510667',
    },
    ...{ token: 'A_UNIQUE_TOKEN', guild_id: '290926798626357999', version: 1 },
    member: { user: { id: '53908232506183680', username: 'Mason' }, roles: [] },
    data: {
      id: '771825006014889984',
      name: 'ask',
      type: 1,
      options: [{ type: 3, name: 'question', value: 'why?' }],
    },
  };

  it('answers a ping', async () =>
    expect(await parse('discord', { type: 1, id: '1' })).toMatchObject({
      respond: { body: '{"type":1}' },
      messages: [],
    }));

  it('defers a command, and hands its token to the host', async () =>
    expect(await parse('discord', interaction)).toEqual({
      respond: { content_type: 'application/json', body: '{"type":5}' },
      messages: [
        {
          ...{ delivery_id: '786008729715212338', peer: '645027906669510667', text: 'why?', kind: 'command' },
          ...{ guild: '290926798626357999', reply_secret: 'A_UNIQUE_TOKEN' },
          sender: { id: '53908232506183680', name: 'Mason', is_bot: false },
          reply_to: { application_id: '845027738276462632' },
        },
      ],
    }));

  it('edits the deferred response, adds further parts, and later writes to the channel', async () => {
    const reply = { has_reply_secret: true, reply_to: { application_id: '845' } };
    expect(await format('discord', reply)).toMatchObject({
      ...{ method: 'PATCH', url: '/webhooks/845/{reply_secret}/messages/@original' },
    });
    expect(await format('discord', { ...reply, part: 1 })).toMatchObject({
      ...{ method: 'POST', url: '/webhooks/845/{reply_secret}' },
    });
    expect(await format('discord', { ...reply, has_reply_secret: false })).toMatchObject({
      ...{ method: 'POST', url: '/channels/4711/messages', headers: { authorization: 'Bot {token}' } },
    });
    expect(await format('discord', { peer: '../../x' })).toMatchObject({ outcome: 'failed' });
  });
});

describe('whatsapp', () => {
  // https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/payload-examples
  const payload = (value: object) => ({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: '102290129340398',
        changes: [
          {
            value: {
              ...{
                messaging_product: 'whatsapp',
                contacts: [{ profile: { name: 'Sheena Nelson' }, wa_id: '16505551234' }],
              },
              metadata: { display_phone_number: '15550783881', phone_number_id: '106540352242922' },
              ...value,
            },
            field: 'messages',
          },
        ],
      },
    ],
  });
  const text = (id: string, body: string) => ({
    ...{ from: '16505551234', id, timestamp: '1749416383', type: 'text', text: { body } },
  });

  it('reads a batch of messages, and no states', async () => {
    expect(
      await parse(
        'whatsapp',
        payload({ messages: [text('wamid.1', 'Does it come'), text('wamid.2', 'in blue?')] }),
      ),
    ).toMatchObject({
      messages: [
        {
          ...{ delivery_id: 'wamid.1', peer: '16505551234', text: 'Does it come' },
          ...{ sender: { name: 'Sheena Nelson' }, reply_to: { phone_number_id: '106540352242922' } },
        },
        { delivery_id: 'wamid.2', text: 'in blue?' },
      ],
    });
    expect(await parse('whatsapp', payload({ statuses: [{ id: 'wamid.1', status: 'delivered' }] }))).toEqual({
      messages: [],
    });
  });

  it('writes to the phone number that the message came to', async () => {
    expect(await format('whatsapp', { reply_to: { phone_number_id: '106540352242922' } })).toMatchObject({
      url: '/v23.0/106540352242922/messages',
      body: { messaging_product: 'whatsapp', to: '4711', type: 'text' },
    });
    expect(await format('whatsapp', { reply_to: { phone_number_id: '../1' } })).toMatchObject({
      outcome: 'failed',
    });
  });
});

describe('a request that a plug-in writes', () => {
  const send = (url: string, more: { baseUrl?: string | null; headers?: Record<string, string> } = {}) =>
    handlers.send({
      ...{ plugin: 'telegram', baseUrl: more.baseUrl ?? null, token: TOKEN, replySecret: null },
      request: { method: 'POST', url, headers: more.headers ?? {}, body: '{}' },
      ...{ idempotencyKey: 'key', attempt: null },
    });

  // @shows E8 O4
  it.each([
    ...[
      'https://evil.example/{token}',
      'https://api.telegram.org.evil.example/',
      'http://127.0.0.1:9/{token}',
    ],
    ...['http://2130706433/', 'http://[::ffff:127.0.0.1]/', 'http://0x7f.1/', '//evil.example/{token}'],
    ...['https://api.telegram.org:8443/', 'https://user@api.telegram.org/', 'file:///etc/passwd'],
    ...['https://api.telegram.org@evil.example/', 'gopher://api.telegram.org/'],
  ])('to %s is refused without a connection, and the reason has no token', async (url) => {
    dialled.length = 0;
    resolved.length = 0;
    const end = await send(url);
    expect(end).toMatchObject({ outcome: 'refused' });
    expect(JSON.stringify(end)).not.toContain('canary');
    expect([dialled, resolved]).toEqual([[], []]);
  });

  it('to a granted host that leads to a private address is refused without a connection', async () => {
    dialled.length = 0;
    for (const address of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:10.0.0.1', 'fd00::1']) {
      addresses = ['93.184.215.14', address];
      expect(await send('/bot{token}/sendMessage')).toMatchObject({ outcome: 'refused' });
    }
    expect(dialled).toEqual([]);
    addresses = ['127.0.0.1'];
  });

  it('may set no header of the host', async () =>
    expect(await send('/bot{token}/x', { headers: { host: 'evil.example' } })).toMatchObject({
      ...{ outcome: 'refused', reason: 'a plug-in may not set the header host' },
    }));

  it('that does not reach its platform did not leave', async () =>
    expect(await send('/x', { baseUrl: 'http://127.0.0.1:9' })).toMatchObject({ outcome: 'unreached' }));

  it('leaves no token in a log line', () => expect(JSON.stringify(box.log)).not.toContain('canary'));
});
