import type { SessionAddress } from './requests.js';

const escapePart = (part: string): string => encodeURIComponent(part);

/** `{agent}:{channel}:{account}:{peer}`, each part percent-escaped, so that no two addresses share a key. */
export const sessionKeyOf = ({ agentId, channel, account, peer }: SessionAddress): string =>
  [agentId, channel, account, peer].map(escapePart).join(':');
