import { describe, expect, it } from '@jest/globals';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { ChannelScheme } from '@antiphon/contracts/sandbox';
import { isGenuine, isSubscription } from './verify-delivery.js';

const SECONDS = 1_700_000_000;
const NOW = SECONDS * 1_000;
const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');

const check = (
  scheme: ChannelScheme,
  body: string | Buffer,
  headers: Record<string, string>,
  {
    secret = null,
    publicKey = null,
    now = NOW,
  }: { secret?: string | null; publicKey?: string | null; now?: number },
): boolean =>
  isGenuine(
    scheme,
    { headers, body: typeof body === 'string' ? bytes(body) : body },
    { secret, publicKey },
    now,
  );

/** Example of https://docs.slack.dev/authentication/verifying-requests-from-slack */
const SLACK = {
  secret: '8f742231b10e8888abcd99yyyzzz85a5',
  time: '1531420618',
  signature: 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
};
/** Example of https://github.com/standard-webhooks/standard-webhooks (reference vectors) */
const STANDARD = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  time: '1614265330',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  body: '{"test": 2432232314}',
};

describe('the signature of Slack', () => {
  const headers = { 'x-slack-request-timestamp': SLACK.time, 'x-slack-signature': SLACK.signature };
  const at = Number(SLACK.time) * 1_000;

  it('of the documented example is right within five minutes', () => {
    const { secret, body } = SLACK;
    expect(check('slack', body, headers, { secret, now: at })).toBe(true);
    expect(check('slack', body, headers, { secret, now: at + 299_000 })).toBe(true);
    expect(check('slack', body, headers, { secret, now: at + 301_000 })).toBe(false);
    expect(check('slack', body, headers, { secret, now: at - 301_000 })).toBe(false);
  });

  it('of another body, time or secret is wrong', () => {
    const { secret, body } = SLACK;
    expect(check('slack', `${body} `, headers, { secret, now: at })).toBe(false);
    const moved = { ...headers, 'x-slack-request-timestamp': String(Number(SLACK.time) + 1) };
    expect(check('slack', body, moved, { secret, now: at })).toBe(false);
    expect(check('slack', body, headers, { secret: 'other', now: at })).toBe(false);
    expect(check('slack', body, {}, { secret, now: at })).toBe(false);
    expect(check('slack', body, headers, { now: at })).toBe(false);
  });
});

describe('the signature of Standard Webhooks', () => {
  const headers = {
    'webhook-id': STANDARD.id,
    'webhook-timestamp': STANDARD.time,
    'webhook-signature': STANDARD.signature,
  };
  const { secret, body } = STANDARD;
  const now = Number(STANDARD.time) * 1_000;

  it('of the reference vector is right, also as base64url and next to wrong ones', () => {
    expect(check('standard', body, headers, { secret, now })).toBe(true);
    const url = STANDARD.signature.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
    expect(check('standard', body, { ...headers, 'webhook-signature': url }, { secret, now })).toBe(true);
    const several = `v1,AAAA v2,BBBB ${STANDARD.signature}`;
    expect(check('standard', body, { ...headers, 'webhook-signature': several }, { secret, now })).toBe(true);
  });

  it('of another id, time or body is wrong, and so is an old one', () => {
    expect(check('standard', body, { ...headers, 'webhook-id': 'other' }, { secret, now })).toBe(false);
    expect(check('standard', `${body}\n`, headers, { secret, now })).toBe(false);
    expect(check('standard', body, headers, { secret, now: now + 301_000 })).toBe(false);
    expect(check('standard', body, { ...headers, 'webhook-signature': 'v1,' }, { secret, now })).toBe(false);
  });

  it('by a secret without a key is never right', () => {
    const mac = createHmac('sha256', '').update(`${STANDARD.id}.${STANDARD.time}.${body}`).digest('base64');
    const forged = { ...headers, 'webhook-signature': `v1,${mac}` };
    for (const empty of ['', 'whsec_', 'whsec_!!!'])
      expect(check('standard', body, forged, { secret: empty, now })).toBe(false);
  });
});

describe('the signature of Meta', () => {
  it('is that of the bytes, which may escape characters or repeat keys', () => {
    const body = '{"a":1,  "a":2,"text":"caf\\u00e9 \\ud83d\\ude00"}';
    const secret = 'app-secret';
    const signature = `sha256=${createHmac('sha256', secret).update(bytes(body)).digest('hex')}`;
    expect(check('meta', body, { 'x-hub-signature-256': signature }, { secret })).toBe(true);
    const printed = JSON.stringify(JSON.parse(body));
    expect(check('meta', printed, { 'x-hub-signature-256': signature }, { secret })).toBe(false);
    expect(check('meta', body, { 'x-hub-signature-256': 'sha256=' }, { secret })).toBe(false);
  });

  it('confirms a subscription by its token only', () => {
    const query = { 'hub.mode': 'subscribe', 'hub.verify_token': 'right', 'hub.challenge': '1' };
    expect(isSubscription(query, 'right')).toBe(true);
    expect([
      isSubscription(query, 'wrong'),
      isSubscription(query, null),
      isSubscription({}, 'right'),
    ]).toEqual([...[false, false, false]]);
  });
});

describe('the signature of Discord', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const hex = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
  const body = '{"type":1}';
  const time = String(SECONDS);
  const signature = sign(null, bytes(time + body), privateKey).toString('hex');
  const headers = { 'x-signature-ed25519': signature, 'x-signature-timestamp': time };

  it('is right for its time and body only', () => {
    expect(check('discord', body, headers, { publicKey: hex })).toBe(true);
    expect(check('discord', '{"type":2}', headers, { publicKey: hex })).toBe(false);
    const other = { ...headers, 'x-signature-timestamp': String(SECONDS + 1) };
    expect(check('discord', body, other, { publicKey: hex })).toBe(false);
    expect(check('discord', body, { ...headers, 'x-signature-ed25519': 'zz' }, { publicKey: hex })).toBe(
      false,
    );
    expect(check('discord', body, headers, { publicKey: hex, now: NOW + 301_000 })).toBe(false);
    expect(check('discord', body, headers, { secret: 'x' })).toBe(false);
  });
});

describe('a secret header', () => {
  it.each([
    ['telegram', 'x-telegram-bot-api-secret-token'],
    ['secret', 'x-antiphon-channel-secret'],
  ] as const)('of the scheme %s must be the stored one', (scheme, header) => {
    expect(check(scheme, '', { [header]: 'right' }, { secret: 'right' })).toBe(true);
    expect(check(scheme, '', { [header]: 'right ' }, { secret: 'right' })).toBe(false);
    expect(check(scheme, '', { [header]: '' }, { secret: 'right' })).toBe(false);
    expect(check(scheme, '', {}, {})).toBe(false);
  });
});
