const FENCE = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))/;
/** A line that may belong to the list or the indented code before a blank line. */
const CONTINUES = /^(?:\s|[-+*](?:\s|$)|\d{1,9}[.)](?:\s|$))/;
const BLANK = /^[ \t\r]*$/;
/**
 * Definitions of links apply to the whole text, and lines of HTML may hide the fences of code. The
 * label of a definition may end in a later line.
 */
const NEEDS_WHOLE = /^[ >*+\-\d.)]*(?:\[[^\]\n]*(?:\]:|$)|<[a-z!?/])/im;

/** The mark that opened code, such as three backticks, with the spaces before it. */
type Fence = string | null;

/** Returns the fence of code that is open after a line; null outside of code. */
const fenceAfter = (line: string, open: Fence): Fence => {
  const [whole = '', space = '', mark = ''] = FENCE.exec(line) ?? [];
  if (mark === '') return open;
  const info = line.slice(whole.length);
  if (open === null) return mark.startsWith('`') && info.includes('`') ? null : space + mark;
  return mark.startsWith(open.trim()) && info.trim() === '' ? null : open;
};

/** Does the same for code in an item of a list: a line without spaces before it ends the item. */
const itemFenceAfter = (line: string, open: Fence): Fence =>
  fenceAfter(line, open?.startsWith(' ') && /^\S/.test(line) ? null : open);

/** Returns true if a text means the same in blocks as in one piece. */
export const isSplittable = (text: string): boolean => !NEEDS_WHOLE.test(text);

/**
 * Splits a Markdown text at blank lines outside of code and lists, so that a growing text is parsed
 * again only in its last block. The blocks have the same elements as the whole text, unless
 * `isSplittable` is false.
 */
export const splitBlocks = (text: string): readonly string[] => {
  const blocks: string[] = [];
  let lines: string[] = [];
  let [fence, itemFence]: [Fence, Fence] = [null, null];
  let isAfterBlank = false;
  for (const line of text.split('\n')) {
    const isBlank = BLANK.test(line);
    if (isAfterBlank && !isBlank && !CONTINUES.test(line)) {
      blocks.push(lines.join('\n'));
      lines = [];
    }
    fence = fenceAfter(line, fence);
    itemFence = itemFenceAfter(line, itemFence);
    const isOutside = fence === null && itemFence === null;
    isAfterBlank = isOutside && isBlank && lines.length > 0;
    lines.push(line);
  }
  const rest = lines.join('\n');
  return BLANK.test(rest.replaceAll('\n', '')) ? blocks : [...blocks, rest];
};
