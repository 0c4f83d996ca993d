import { z } from 'zod';
import { ChannelMessage } from '@antiphon/contracts/agent';
import { findJsonExcess, toStorableJson } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';

/** Maximum number of messages of one delivery: platforms send batches. */
const MAX_MESSAGES = 100;

/** Response that the platform expects, such as the answer of a challenge. */
const Respond = z.object({
  status: z.int().min(200).max(299).default(200),
  content_type: z.string().max(100).default('application/json'),
  body: z
    .string()
    .max(64 * 1024)
    .default(''),
});
export type Respond = z.infer<typeof Respond>;

/** A message, and the credential that the platform gave for its reply. */
export interface IncomingMessage {
  readonly message: ChannelMessage;
  readonly replySecret: string | null;
}

const id = z.union([z.string(), z.number()]).transform(String);

/** A message in the form of plug-ins: snake case, and ids that may be numbers. */
const Incoming = z
  .object({
    peer: id,
    guild: id.nullish(),
    team: id.nullish(),
    thread: id.nullish(),
    kind: z.string().optional(),
    text: z.string().nullish(),
    button: id.nullish(),
    attachments: z
      .array(
        z.object({
          kind: z.string(),
          name: z.string().nullish(),
          media_type: z.string().nullish(),
          size: z.number().nullish(),
          id: id.nullish(),
        }),
      )
      .nullish(),
    sender: z.object({ id, name: z.string().nullish(), is_bot: z.boolean().nullish() }),
    delivery_id: id,
    reply_to: z.record(z.string(), id).nullish(),
    reply_secret: z.string().max(4_096).nullish(),
  })
  .transform((incoming, context): IncomingMessage => {
    const { attachments, sender, delivery_id: deliveryId, reply_to: replyTo, ...rest } = incoming;
    const { text, reply_secret: replySecret = null, ...places } = rest;
    const { data, error } = ChannelMessage.safeParse({
      ...withoutNull(places),
      ...{ deliveryId, text: text ?? '', replyTo: replyTo ?? {} },
      sender: withoutNull({ id: sender.id, name: sender.name, isBot: sender.is_bot ?? false }),
      attachments: (attachments ?? []).map(({ media_type: mediaType, ...file }) =>
        withoutNull({ ...file, mediaType }),
      ),
    });
    if (data) return { message: data, replySecret };
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  });

const Output = z.object({
  messages: z.array(Incoming).max(MAX_MESSAGES).default([]),
  respond: Respond.nullish(),
});

const withoutNull = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null && field !== undefined)) as T;

export type ParsedDelivery =
  | { readonly ok: true; readonly messages: readonly IncomingMessage[]; readonly respond: Respond | null }
  | { readonly ok: false };

/** Parses what `parse_incoming` returned. Texts are made storable. */
export const parseIncoming = (output: string): ParsedDelivery => {
  if (findJsonExcess(output) !== null) return { ok: false };
  try {
    const value = toStorableJson(JSON.parse(output) as JsonValue);
    const { data } = Output.safeParse(value);
    if (!data) return { ok: false };
    return { ok: true, messages: data.messages, respond: data.respond ?? null };
  } catch {
    return { ok: false };
  }
};
