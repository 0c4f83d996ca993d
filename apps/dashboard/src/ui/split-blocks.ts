const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * Splits a text at blank lines outside of code, so that a growing text is parsed again only in its
 * last block.
 */
export const splitBlocks = (text: string): readonly string[] => {
  const blocks: string[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  for (const line of text.split('\n')) {
    const mark = FENCE.exec(line)?.[1];
    if (mark && fence === null) fence = mark;
    else if (mark && fence !== null && mark.startsWith(fence)) fence = null;
    const isEnd = fence === null && line.trim() === '' && lines.length > 0;
    if (!isEnd) lines.push(line);
    else {
      blocks.push(lines.join('\n'));
      lines = [];
    }
  }
  return lines.length > 0 ? [...blocks, lines.join('\n')] : blocks;
};
