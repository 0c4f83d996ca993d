import { describe, expect, it } from '@jest/globals';
import type { TestStack } from '@antiphon/testing/stack';
import type { FakePlatform, PlatformRequest } from './fake-platform.js';
import { INTERACTION_TOKEN, PLATFORM_TOKEN, PROOFS } from './platform-payloads.js';
import { readEvents, waitForValue } from './stack-under-test.js';

/** An agent whose calls need an approval, for one conversation of each platform. */
export const APPROVAL_BINDINGS = `
[[agents]]
id = "careful"
provider = "scripted"
tools = ["calculator"]

[[agents.approvals]]
tool = "calculator"
${[
  ['telegram', '700'],
  ['slack', 'C700'],
  ['discord', '7007'],
  ['whatsapp', '4917007'],
]
  .map(([channel, peer]) => `\n[[bindings]]\nagent = "careful"\nchannel = "${channel}"\npeer = "${peer}"\n`)
  .join('')}`;

/** Senders who may decide on each platform. */
export const APPROVERS = 'approvers = ["701", "U701", "4917007"]';

const ASK = '/tool calculator {"expression":"19+23"}';
let ids = 500_000;

interface Platform {
  readonly channel: string;
  readonly ask: () => object;
  /** Body of a press, by the sender and the value of the button. */
  readonly press: (sender: string, value: string) => string;
  readonly approver: string;
  /** Value of the first or second button of the message. */
  readonly valueOf: (body: string, index: number) => string | undefined;
}

type Message = Readonly<Record<string, never>> & { readonly [key: string]: never };
const at = (body: string, ...path: readonly (string | number)[]): string | undefined =>
  path.reduce<unknown>((value, key) => (value as Message | undefined)?.[key], JSON.parse(body)) as
    string | undefined;

const PLATFORMS: readonly Platform[] = [
  {
    channel: 'telegram',
    approver: '701',
    ask: () => ({
      update_id: ids++,
      message: { message_id: 1, chat: { id: 700 }, text: ASK, from: { id: 700, first_name: 'T' } },
    }),
    // https://core.telegram.org/bots/api#callbackquery
    press: (sender, data) =>
      JSON.stringify({
        update_id: ids,
        callback_query: {
          ...{ id: `q${ids++}`, from: { id: Number(sender), is_bot: false, first_name: 'P' }, data },
          ...{ message: { message_id: 2, chat: { id: 700, type: 'private' } }, chat_instance: '1' },
        },
      }),
    valueOf: (body, index) => at(body, 'reply_markup', 'inline_keyboard', 0, index, 'callback_data'),
  },
  {
    channel: 'slack',
    approver: 'U701',
    ask: () => ({
      ...{ type: 'event_callback', team_id: 'T1', event_id: `Ev${ids++}` },
      event: {
        type: 'message',
        channel_type: 'im',
        user: 'U700',
        text: ASK,
        ts: `${ids++}.1`,
        channel: 'C700',
      },
    }),
    // https://docs.slack.dev/reference/interaction-payloads/block_actions-payload
    press: (sender, value) =>
      new URLSearchParams({
        payload: JSON.stringify({
          ...{ type: 'block_actions', team: { id: 'T1' }, trigger_id: `12321423423.${ids++}` },
          ...{
            user: { id: sender, username: 'p', team_id: 'T1' },
            channel: { id: 'C700', name: 'directmessage' },
          },
          actions: [{ type: 'button', action_id: 'antiphon_0', block_id: 'b', value, action_ts: '1.1' }],
        }),
      }).toString(),
    valueOf: (body, index) => at(body, 'blocks', 1, 'elements', index, 'value'),
  },
  {
    channel: 'discord',
    approver: '701',
    ask: () => ({
      ...{ type: 2, id: `${ids++}`, application_id: '845', channel_id: '7007', token: INTERACTION_TOKEN },
      ...{ member: { user: { id: '700', username: 'M' } } },
      data: { name: 'ask', options: [{ name: 'question', value: ASK }] },
    }),
    // https://docs.discord.com/developers/components/using-message-components
    press: (sender, custom_id) =>
      JSON.stringify({
        ...{ type: 3, id: `${ids++}`, application_id: '845', channel_id: '7007', token: INTERACTION_TOKEN },
        ...{ member: { user: { id: sender, username: 'P' } }, data: { component_type: 2, custom_id } },
      }),
    valueOf: (body, index) => at(body, 'components', 0, 'components', index, 'custom_id'),
  },
  {
    channel: 'whatsapp',
    approver: '4917007',
    ask: () => whatsapp({ type: 'text', text: { body: ASK } }),
    // https://developers.facebook.com/docs/whatsapp/cloud-api/guides/send-message-templates
    press: (sender, id) =>
      JSON.stringify(
        whatsapp(
          {
            type: 'interactive',
            interactive: { type: 'button_reply', button_reply: { id, title: 'Approve' } },
          },
          sender,
        ),
      ),
    valueOf: (body, index) => at(body, 'interactive', 'action', 'buttons', index, 'reply', 'id'),
  },
];

function whatsapp(message: object, from = '4917007'): object {
  const messages = [{ from, id: `wamid.${ids++}`, ...message }];
  const value = { metadata: { phone_number_id: '1065' }, messages };
  return { object: 'whatsapp_business_account', entry: [{ changes: [{ field: 'messages', value }] }] };
}

interface World {
  readonly stack: TestStack;
  readonly platform: FakePlatform;
}

/** Describes approvals that are decided by buttons of each platform. */
export const describeApprovalButtons = (worldOf: () => World): void => {
  const post = async (channel: string, body: string): Promise<void> => {
    const type = body.startsWith('payload=') ? 'application/x-www-form-urlencoded' : 'application/json';
    const response = await fetch(`${worldOf().stack.gatewayUrl}/webhook/${channel}`, {
      ...{ method: 'POST', body, headers: { 'content-type': type, ...PROOFS[channel]?.(body) } },
    });
    expect(response.status).toBe(200);
  };
  const next = async (channel: string, from: number, text: string): Promise<PlatformRequest> => {
    const found = () =>
      worldOf()
        .platform.requests.slice(from)
        .find(({ path, body }) => path.startsWith(`/${channel}/`) && body.includes(text));
    return waitForValue(`"${text}" on ${channel}`, () => Promise.resolve(found()));
  };
  const decisions = async (approvalId: string | undefined) =>
    (await readEvents(worldOf().stack, { category: 'session' })).filter(
      ({ type, data }) => /^Approval(?:Granted|Denied)$/.test(type) && data['approvalId'] === approvalId,
    );

  describe('an approval on a platform', () => {
    // @shows O1 O3
    it.each(PLATFORMS.map((one) => [one.channel, one] as const))(
      '%s is decided once by the button, and by an approver alone',
      async (channel, { ask, press, approver, valueOf }) => {
        const begin = worldOf().platform.requests.length;
        await post(channel, JSON.stringify(ask()));
        const asked = await next(channel, begin, 'asks for an approval');
        const [approve, deny] = [valueOf(asked.body, 0), valueOf(asked.body, 1)];
        const approvalId = /^approval:(.+):approve$/.exec(approve ?? '')?.[1];
        expect(deny).toBe(`approval:${approvalId}:deny`);
        if (channel !== 'whatsapp') {
          await post(channel, press('799', deny ?? ''));
          await next(channel, begin, 'You may not decide this approval.');
          expect(await decisions(approvalId)).toEqual([]);
        }
        const pressed = press(approver, approve ?? '');
        await Promise.all([post(channel, pressed), post(channel, pressed)]);
        await next(channel, begin, 'Approved.');
        await next(channel, begin, '42');
        await post(channel, press(approver, deny ?? ''));
        await next(channel, begin, 'The approval was given before.');
        const facts = await decisions(approvalId);
        expect(facts.map(({ type, data }) => [type, data['answeredBy']])).toEqual([
          ['ApprovalGranted', `channel/${channel}/${approver}`],
        ]);
        const shown = worldOf()
          .platform.requests.slice(begin)
          .filter(
            ({ path, body }) => path.startsWith(`/${channel}/`) && body.includes('asks for an approval'),
          );
        expect(shown).toHaveLength(1);
        expect(JSON.stringify(facts)).not.toContain(PLATFORM_TOKEN);
      },
    );
  });
};
