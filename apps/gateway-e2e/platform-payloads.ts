import { createHmac, generateKeyPairSync, sign } from 'node:crypto';

export const SECRET = 'canary-platform-secret-5c4b3a29';
export const PLATFORM_TOKEN = '7301:canary-platform-token-1f2e3d4c';
export const INTERACTION_TOKEN = 'canary-interaction-token-9e8d7c6b';
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
export const PUBLIC_KEY = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');

const seconds = (): string => String(Math.floor(Date.now() / 1_000));
const hmac = (text: string): string => createHmac('sha256', SECRET).update(text, 'utf8').digest('hex');

export type Headers = Readonly<Record<string, string>>;
/** Headers by which each platform proves a body. */
export const PROOFS: Readonly<Record<string, (body: string) => Headers>> = {
  telegram: () => ({ 'x-telegram-bot-api-secret-token': SECRET }),
  slack: (body) => {
    const time = seconds();
    return { 'x-slack-request-timestamp': time, 'x-slack-signature': `v0=${hmac(`v0:${time}:${body}`)}` };
  },
  whatsapp: (body) => ({ 'x-hub-signature-256': `sha256=${hmac(body)}` }),
  discord: (body) => {
    const time = seconds();
    const signature = sign(null, Buffer.from(time + body, 'utf8'), privateKey).toString('hex');
    return { 'x-signature-timestamp': time, 'x-signature-ed25519': signature };
  },
};
