const MAX_NAME = 60;

/** Returns a name of a chat, made of its first message. Empty for a message without a letter. */
export const nameOfText = (text: string): string => {
  const line =
    text
      .normalize('NFC')
      .split('\n')
      .find((each) => each.trim() !== '') ?? '';
  const clean = line
    .replaceAll(/[\p{Cc}\p{Cs}\p{Cf}/\\]/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replace(/^\.+/, '')
    .trim();
  if (clean.length <= MAX_NAME) return clean;
  const cut = clean.slice(0, MAX_NAME);
  const end = cut.lastIndexOf(' ');
  // No end is within a character.
  return (end > MAX_NAME / 2 ? cut.slice(0, end) : cut.replace(/[\uD800-\uDBFF]$/, '')).trim();
};
