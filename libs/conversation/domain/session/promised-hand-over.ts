const SUBJECT = String.raw`\b(?:i['’]?ll|i['’]?m|i (?:will|am|can now|shall)|let me|we['’]?ll|we will)`;
const VERB = String.raw`(?:hand(?:ing)?|transfer(?:ring)?|pass(?:ing)?|forward(?:ing)?|redirect(?:ing)?|connect(?:ing)?)`;
const OBJECT = String.raw`(?:you|this|it|that|your (?:request|question|message|case|issue))`;
const TARGET = String.raw`(?:over |on |off )?(?:to|with)\b`;
const PROMISE = new RegExp(
  `${SUBJECT} (?:now |just |going to |gladly )?${VERB} (?:over )?(?:${OBJECT} )?${TARGET}`,
  'i',
);

/** Text after which a promise is no longer searched: it is at the end of short answers. */
const MAX_LENGTH = 2_000;

/**
 * Returns true if an answer says that its agent gives the user to another one. Knows English
 * phrases only. A wrong match costs one model call, because an answer is returned once a turn.
 */
export const promisesHandOver = (text: string): boolean =>
  text.length <= MAX_LENGTH && PROMISE.test(text.replace(/\s+/g, ' '));
