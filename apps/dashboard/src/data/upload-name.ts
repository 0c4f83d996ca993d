const FOLDER = 'uploads';
const MAX_NAME = 120;

/** Returns the last part of a path for a file of another machine. */
export const nameForUpload = (name: string): string => {
  const text = name
    .normalize('NFC')
    .replaceAll(/[\p{Cc}\p{Cs}\p{Cf}/\\]/gu, '_')
    .trim();
  const clean = text.replace(/^\.+/, '');
  if (clean === '') return 'file';
  const dot = clean.lastIndexOf('.');
  const ending = dot > 0 && clean.length - dot <= 12 ? clean.slice(dot) : '';
  return clean.length > MAX_NAME ? clean.slice(0, MAX_NAME - ending.length) + ending : clean;
};

/** Returns the path of the nth attempt: `uploads/notes.md`, then `uploads/notes-2.md`. */
export const uploadPath = (name: string, attempt: number): string => {
  const clean = nameForUpload(name);
  const dot = clean.lastIndexOf('.');
  const at = dot > 0 ? dot : clean.length;
  return `${FOLDER}/${clean.slice(0, at)}${attempt === 1 ? '' : `-${attempt}`}${clean.slice(at)}`;
};
