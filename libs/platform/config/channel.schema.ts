import { z } from 'zod';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { TOOL, bool, hint, int, names, oneWorkspace, show, shownText, text } from './key-hints.js';

/** Schemes by which platforms prove the origin of a delivery (`libs/contracts/sandbox`). */
const SCHEMES = ['secret', 'standard', 'telegram', 'slack', 'meta', 'discord'] as const;

/** Plug-ins for channels that ship with Antiphon. */
export const BUNDLED_CHANNELS: readonly string[] = ['mock', 'telegram', 'slack', 'discord', 'whatsapp'];

/** Roles that may decide an approval (`libs/contracts/agent`). */
const APPROVERS = ['member', 'operator', 'admin'] as const;

const MIB = 1024 * 1024;

/** Schema of a channel: a platform account by which peers reach agents. */
export const Channel = z.strictObject({
  name: show(
    hint(
      z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/),
      '1 to 32 of a-z, 0-9 and dashes, beginning with a letter or digit',
      'name = "telegram"',
    ),
  ),
  workspace: oneWorkspace().default(DEFAULT_WORKSPACE),
  plugin: show(
    hint(z.string().regex(TOOL), 'the name of a plug-in of the kind channel', 'plugin = "telegram"'),
  ).optional(),
  account: shownText('the account in bindings and session keys', 'account = "support"', 200).default(
    'default',
  ),
  base_url: text(
    'the address of the platform in place of its own, an http or https URL',
    'base_url = "http://127.0.0.1:8081"',
    2_048,
  )
    .nullable()
    .default(null),
  connection: hint(
    z.enum(['webhook', 'polling', 'socket']),
    'webhook (the platform sends), polling (Antiphon asks) or socket (Antiphon holds a connection)',
    'connection = "webhook"',
  ).default('webhook'),
  scheme: hint(
    z.enum(SCHEMES),
    `how the platform proves its origin: one of ${SCHEMES.join(', ')}`,
    'scheme = "standard"',
  ).optional(),
  public_key: hint(
    z.string().regex(/^[0-9a-fA-F]{64}$/),
    'the public Ed25519 key of the platform: 64 hexadecimal digits',
    'public_key = "the-public-key-of-the-application"',
  ).optional(),
  allow: names(
    'ids of peers or senders who need no pairing',
    /^[^]{1,200}$/,
    'allow = ["123456789"]',
  ).default([]),
  open: bool('whether every peer may talk to agents without pairing', 'open = false').default(false),
  approvers: names(
    'ids of senders who may decide approvals by buttons, once they are paired or allowed',
    /^[^]{1,200}$/,
    'approvers = ["123456789"]',
  ).default([]),
  approver_role: hint(
    z.enum(APPROVERS),
    `role with which approvers decide: ${APPROVERS.join(', ')}`,
    'approver_role = "operator"',
  ).default('operator'),
  messages_per_minute: int(
    1,
    10_000,
    'messages of one peer in a minute; further ones are refused',
    'messages_per_minute = 30',
  ).default(30),
  deliveries_per_second: int(
    1,
    10_000,
    'deliveries of the channel in a second; further ones get 429',
    'deliveries_per_second = 50',
  ).default(50),
  max_body_bytes: int(
    1_024,
    4 * MIB,
    'bytes of one delivery at most; the plug-in whatsapp has 3145728 by default',
    'max_body_bytes = 1048576',
  ).optional(),
});

const WHATSAPP_BYTES = 3 * MIB;

/** Returns the maximum size of a delivery, bytes. */
export const maxBodyBytesOf = ({
  plugin,
  name,
  max_body_bytes: own,
}: Pick<z.infer<typeof Channel>, 'plugin' | 'name' | 'max_body_bytes'>): number =>
  own ?? ((plugin ?? name) === 'whatsapp' ? WHATSAPP_BYTES : MIB);
