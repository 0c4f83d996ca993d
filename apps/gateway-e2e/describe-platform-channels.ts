import { describe, expect, it } from '@jest/globals';
import type { TestStack } from '@antiphon/testing/stack';
import { APPROVAL_BINDINGS, APPROVERS } from './describe-approval-buttons.js';
import type { FakePlatform, PlatformRequest } from './fake-platform.js';
import { INTERACTION_TOKEN, PLATFORM_TOKEN, PROOFS, PUBLIC_KEY, SECRET } from './platform-payloads.js';
import type { Headers } from './platform-payloads.js';
import { readEvents, waitForValue } from './stack-under-test.js';

const channelOf = (name: string, url: string, more = ''): string => `
[[channels]]
name = "${name}"
base_url = "${url}/${name}"
open = true
${more}
`;

/** Configures a channel for each platform, with a fake one in its place. */
export const platformChannels = (url: string): string =>
  ['telegram', 'slack', 'whatsapp'].map((name) => channelOf(name, url, APPROVERS)).join('') +
  channelOf('discord', url, `${APPROVERS}\npublic_key = "${PUBLIC_KEY}"`) +
  channelOf('polled', url, 'plugin = "telegram"\nconnection = "polling"') +
  channelOf('held', url, 'plugin = "slack"\nconnection = "socket"') +
  APPROVAL_BINDINGS;

/** Secrets of the channels of the platforms. */
export const PLATFORM_SECRETS = ['telegram', 'slack', 'whatsapp', 'discord', 'polled', 'held'].flatMap(
  (channel) => [
    { channel, name: 'token', secret: PLATFORM_TOKEN },
    { channel, name: 'secret', secret: SECRET },
    { channel, name: 'verify', secret: SECRET },
  ],
);

const update = (id: number, text: string) => ({
  update_id: id,
  message: {
    ...{ message_id: id, chat: { id: 1111111, type: 'private' }, text },
    from: { id: 1111111, first_name: 'Test', is_bot: false },
  },
});
const slackMention = (text: string) => ({
  ...{ type: 'event_callback', team_id: 'T123ABC456', event_id: 'Ev123ABC456' },
  event: { type: 'app_mention', user: 'U1', text: `<@UBOT> ${text}`, ts: '1.5', channel: 'C1' },
});
const whatsappBatch = (text: string) => ({
  object: 'whatsapp_business_account',
  entry: [
    {
      changes: [
        {
          field: 'messages',
          value: {
            metadata: { phone_number_id: '106540352242922' },
            messages: [{ from: '16505551234', id: 'wamid.1', type: 'text', text: { body: text } }],
          },
        },
      ],
    },
  ],
});
const discordCommand = (text: string) => ({
  ...{ type: 2, id: '786008729715212338', application_id: '845027738276462632', channel_id: '6450' },
  ...{ token: INTERACTION_TOKEN, member: { user: { id: '539', username: 'Mason' } } },
  data: { name: 'ask', options: [{ name: 'question', value: text }] },
});

interface World {
  readonly stack: TestStack;
  readonly platform: FakePlatform;
}

/** Describes a delivery of each platform, from its documented payload to the answer on it. */
export const describePlatformChannels = (worldOf: () => World): void => {
  const post = async (channel: string, body: string, headers: Headers = PROOFS[channel]?.(body) ?? {}) => {
    const url = `${worldOf().stack.gatewayUrl}/webhook/${channel}`;
    const response = await fetch(url, {
      ...{ method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } },
    });
    return { status: response.status, text: await response.text() };
  };
  const sentTo = (channel: string, text: string): PlatformRequest[] =>
    worldOf().platform.requests.filter(
      ({ path, body }) => path.startsWith(`/${channel}/`) && body.includes(text),
    );
  const answerOn = (channel: string, text: string): Promise<PlatformRequest> =>
    waitForValue(`the answer on ${channel}`, () => Promise.resolve(sentTo(channel, text)[0]));

  describe('a delivery of a platform', () => {
    it.each([
      ['telegram', update(10_000, 'to telegram'), `/telegram/bot${PLATFORM_TOKEN}/sendMessage`, ''],
      ['slack', slackMention('to slack'), '/slack/chat.postMessage', ''],
      ['whatsapp', whatsappBatch('to whatsapp'), '/whatsapp/v23.0/106540352242922/messages', ''],
      [
        ...['discord', discordCommand('to discord')],
        ...[`/discord/webhooks/845027738276462632/${INTERACTION_TOKEN}/messages/@original`, '{"type":5}'],
      ] as [string, object, string, string],
    ])('%s is answered once, with its token and in its form', async (channel, payload, path, response) => {
      const body = JSON.stringify(payload, null, 1);
      expect(await post(channel, body, {})).toMatchObject({ status: 401 });
      const wrong = { ...PROOFS[channel]?.(`${body} `) };
      if (channel !== 'telegram') expect((await post(channel, body, wrong)).status).toBe(401);
      for (let repeat = 0; repeat < 3; repeat++)
        expect(await post(channel, body)).toEqual({ status: 200, text: response });
      const answer = await answerOn(channel, `to ${channel}`);
      expect(answer.path).toBe(path);
      if (channel === 'slack' || channel === 'whatsapp')
        expect(answer.headers.authorization).toBe(`Bearer ${PLATFORM_TOKEN}`);
      expect(sentTo(channel, `to ${channel}`)).toHaveLength(1);
    });

    it('answers the handshakes of Slack, Discord and Meta', async () => {
      const challenge = await post('slack', JSON.stringify({ type: 'url_verification', challenge: 'c-1' }));
      expect(challenge).toEqual({ status: 200, text: '{"challenge":"c-1"}' });
      expect(await post('discord', '{"type":1}')).toEqual({ status: 200, text: '{"type":1}' });
      const url = `${worldOf().stack.gatewayUrl}/webhook/whatsapp?hub.mode=subscribe&hub.challenge=1158201444`;
      const right = await fetch(`${url}&hub.verify_token=${SECRET}`);
      expect([right.status, await right.text()]).toEqual([200, '1158201444']);
      expect((await fetch(`${url}&hub.verify_token=wrong`)).status).toBe(401);
    });

    it('is asked for by polling, and answered once', async () => {
      const { platform } = worldOf();
      const offsets: string[] = [];
      platform.answer = ({ path }) => {
        const offset = /^\/polled\/.+\/getUpdates\?timeout=5&offset=(\d+)$/.exec(path)?.[1];
        if (offset === undefined) return {};
        offsets.push(offset);
        const result = [update(20_000, 'by polling'), update(20_001, 'second')];
        return { body: { ok: true, result: Number(offset) > 20_001 ? [] : result } };
      };
      await answerOn('polled', 'by polling');
      await answerOn('polled', 'second');
      await waitForValue('the next poll', () => Promise.resolve(offsets.includes('20002') || undefined));
      expect([sentTo('polled', 'by polling').length, sentTo('polled', 'second').length]).toEqual([1, 1]);
      expect((await post('polled', JSON.stringify(update(3, 'x')), PROOFS['telegram']?.(''))).status).toBe(
        401,
      );
    });

    it('comes by the socket that the host holds, and is answered once over two connections', async () => {
      const { platform } = worldOf();
      const acks: string[] = [];
      const hold = async (n: number): Promise<void> => {
        const socket = await waitForValue('the socket', () => Promise.resolve(platform.sockets[n]));
        socket.on('message', (data) =>
          acks.push((JSON.parse((data as Buffer).toString('utf8')) as { envelope_id: string }).envelope_id),
        );
        socket.send('{"type":"hello"}');
        const payload = slackMention('by socket');
        socket.send(JSON.stringify({ type: 'events_api', envelope_id: `e-${n}`, payload }));
        await waitForValue('the acknowledgement', () =>
          Promise.resolve(acks.includes(`e-${n}`) || undefined),
        );
      };
      await hold(0);
      await answerOn('held', 'by socket');
      platform.sockets[0]?.close();
      await hold(1);
      expect(sentTo('held', 'by socket')).toHaveLength(1);
      expect(await post('held', JSON.stringify(slackMention('x')), PROOFS['slack']?.('x'))).toMatchObject({
        status: 401,
      });
    });

    it('has no credential of a reply in an event', async () => {
      const events = JSON.stringify(await readEvents(worldOf().stack));
      expect(events).not.toContain(INTERACTION_TOKEN);
      expect(events).not.toContain(PLATFORM_TOKEN);
    });
  });
};
