import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { assertNever } from '@antiphon/kernel';
import type { ChannelScheme } from '@antiphon/contracts/sandbox';

/** A delivery as it came, with lower-case names of headers. */
export interface RawDelivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface VerifyKeys {
  /** Secret of the signature, or the secret itself; null if none is stored. */
  readonly secret: string | null;
  /** Ed25519 key, 32 bytes as hex; null if none is configured. */
  readonly publicKey: string | null;
}

/** Maximum difference between the time of a delivery and the clock, ms. */
export const REPLAY_WINDOW_MS = 300_000;

const digest = (text: string | Uint8Array): Buffer => createHash('sha256').update(text).digest();

/** Compares two texts in a time that depends on neither. */
const isSame = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));

const isSameBytes = (a: Uint8Array, b: Uint8Array): boolean => timingSafeEqual(digest(a), digest(b));

/** Returns true for a time in seconds within the window. */
const isRecent = (seconds: string, now: number): boolean =>
  /^\d{1,12}$/.test(seconds) && Math.abs(now - Number(seconds) * 1_000) <= REPLAY_WINDOW_MS;

const hmac = (key: string | Uint8Array, ...parts: readonly (string | Uint8Array)[]): Buffer => {
  const mac = createHmac('sha256', key);
  for (const part of parts) mac.update(part);
  return mac.digest();
};

const hexOf = (text: string): Buffer =>
  /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.alloc(0);

type Check = (delivery: RawDelivery, secret: string, now: number) => boolean;

const checkSlack: Check = ({ headers, body }, secret, now) => {
  const { 'x-slack-request-timestamp': time = '', 'x-slack-signature': signature = '' } = headers;
  const expected = hmac(secret, `v0:${time}:`, body);
  const isRight = isSameBytes(hexOf(/^v0=(.*)$/s.exec(signature)?.[1] ?? ''), expected);
  return isRight && isRecent(time, now);
};

const checkMeta: Check = ({ headers, body }, secret) => {
  const signature = /^sha256=(.*)$/s.exec(headers['x-hub-signature-256'] ?? '')?.[1] ?? '';
  return isSameBytes(hexOf(signature), hmac(secret, body));
};

/** Returns the key of a Standard Webhooks secret: base64 behind `whsec_`. */
const standardKey = (secret: string): Buffer => Buffer.from(secret.replace(/^whsec_/, ''), 'base64');

/** Each signature is base64, or base64url after a re-encoding. One right one is enough. */
const checkStandard: Check = ({ headers, body }, secret, now) => {
  const { 'webhook-id': id = '', 'webhook-timestamp': time = '', 'webhook-signature': list = '' } = headers;
  const key = standardKey(secret);
  // A secret without base64 would be a key that everyone knows.
  if (key.length === 0) return false;
  const expected = hmac(key, `${id}.${time}.`, body);
  let isRight = false;
  for (const entry of list.split(' ').slice(0, 10))
    if (entry.startsWith('v1,') && isSameBytes(Buffer.from(entry.slice(3), 'base64'), expected))
      isRight = true;
  return isRight && id !== '' && isRecent(time, now);
};

/** Header of a form that any program can send. */
export const SECRET_HEADER = 'x-antiphon-channel-secret';

const CHECKS: Readonly<Record<Exclude<ChannelScheme, 'discord'>, Check>> = {
  secret: ({ headers }, secret) => isSame(headers[SECRET_HEADER] ?? '', secret),
  telegram: ({ headers }, secret) => isSame(headers['x-telegram-bot-api-secret-token'] ?? '', secret),
  slack: checkSlack,
  meta: checkMeta,
  standard: checkStandard,
};

const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

const publicKeyOf = (hex: string): KeyObject =>
  createPublicKey({
    key: Buffer.concat([ED25519_PREFIX, Buffer.from(hex, 'hex')]),
    ...{ format: 'der', type: 'spki' },
  });

const checkDiscord = ({ headers, body }: RawDelivery, publicKey: string, now: number): boolean => {
  const { 'x-signature-ed25519': signature = '', 'x-signature-timestamp': time = '' } = headers;
  if (!/^[0-9a-f]{128}$/i.test(signature) || !isRecent(time, now)) return false;
  const signed = Buffer.concat([Buffer.from(time, 'utf8'), body]);
  return verify(null, signed, publicKeyOf(publicKey), Buffer.from(signature, 'hex'));
};

/**
 * Returns true if a delivery comes from the platform: its signature or secret is right. A signed
 * time must be within the window. Without a key nothing is right.
 */
export const isGenuine = (
  scheme: ChannelScheme,
  delivery: RawDelivery,
  { secret, publicKey }: VerifyKeys,
  now: number,
): boolean => {
  switch (scheme) {
    case 'discord':
      return publicKey !== null && checkDiscord(delivery, publicKey, now);
    case 'secret':
    case 'telegram':
    case 'slack':
    case 'meta':
    case 'standard':
      return secret !== null && CHECKS[scheme](delivery, secret, now);
    default:
      return assertNever(scheme);
  }
};

/** Returns true if the caller of a subscription of Meta knows the token that it was given. */
export const isSubscription = (query: Readonly<Record<string, string>>, token: string | null): boolean =>
  token !== null && query['hub.mode'] === 'subscribe' && isSame(query['hub.verify_token'] ?? '', token);
