/** The code of a file system's error, such as `EACCES`. Not by `instanceof`: Node's own errors may be another realm's. */
export const errorCode = (error: unknown): string => {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown error';
};

export const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(errorCode(error));
