/** One event of a `text/event-stream`, with its data lines joined. */
export interface ServerEvent {
  /** Null where the stream does not name it. */
  readonly event: string | null;
  readonly data: string;
}

/** Takes the bytes of a stream as they come. */
export interface ServerEventReader {
  /** Calls back with each event that these bytes complete; throws what the callback throws. */
  take(bytes: Uint8Array): void;
}

const valueAfter = (line: string, colon: number): string =>
  line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1);

/** Folds lines into events: comments, ids and retry times are passed over, and so is an event without data. */
const createFold = (onEvent: (event: ServerEvent) => void): ((line: string) => void) => {
  let event: string | null = null;
  let data: string | null = null;
  return (line) => {
    if (line === '') {
      const complete = data === null ? null : { event, data };
      event = data = null;
      if (complete) onEvent(complete);
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : valueAfter(line, colon);
    if (field === 'data') data = data === null ? value : `${data}\n${value}`;
    else if (field === 'event') event = value;
  };
};

/**
 * Reads server-sent events without waiting between them: a vendor's SDK takes several turns of the promise queue for
 * each, which is more than everything else that is done with it (ADR 60). Lines end in LF, CR LF or CR; an event that
 * the stream breaks off is none. Time is linear in what comes, however it is cut.
 */
export const createServerEvents = (onEvent: (event: ServerEvent) => void): ServerEventReader => {
  const decoder = new TextDecoder();
  const fold = createFold(onEvent);
  /** The beginning of a line whose end has not come. */
  let begun: string[] = [];
  /** The last line ended in CR: an LF that follows belongs to it. */
  let afterCr = false;

  const endLine = (rest: string): void => {
    const line = begun.length === 0 ? rest : [...begun, rest].join('');
    begun = [];
    fold(line);
  };
  const takeText = (text: string): void => {
    let from = afterCr && text.startsWith('\n') ? 1 : 0;
    if (text !== '') afterCr = false;
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      endLine(text.slice(from, end.index));
      from = ends.lastIndex;
      afterCr = end[0] === '\r' && from === text.length;
    }
    if (from < text.length) begun.push(text.slice(from));
  };
  return { take: (bytes) => takeText(decoder.decode(bytes, { stream: true })) };
};
