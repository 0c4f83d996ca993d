/** A failure whose message is all that the user needs: it is printed without a stack. */
export class UserError extends Error {
  /**
   * @param {string} message
   * @param {import('./types.js').UserErrorOptions} [options]
   */
  constructor(message, { exitCode = 1, ...options } = {}) {
    super(message, options);
    this.name = 'UserError';
    /** 1 for a failure, 2 for bad usage or configuration. */
    this.exitCode = exitCode;
  }
}

const DISK_FULL = /ENOSPC|EDQUOT|no space left on device|disk quota exceeded/i;
const READ_ONLY = new Set(['EROFS', 'EACCES', 'EPERM']);
const NOT_A_FOLDER = new Set(['EEXIST', 'ENOTDIR']);

/**
 * Explains a full disk or an unusable folder to a user. Returns null for other errors.
 * @type {import('./types.js').ExplainSystemError}
 */
export const explainSystemError = (error, subject) => {
  if (DISK_FULL.test(`${error?.code ?? ''} ${error?.message ?? error}`))
    return `the disk that holds ${subject} is full: free some space and run it again; nothing has to be cleaned up first`;
  if (READ_ONLY.has(error?.code))
    return `${subject} cannot be written (${error.code}): make it writable for this user, or choose another place`;
  if (error?.code === 'ENOENT' && error.syscall === 'mkdir')
    return `${subject} cannot be made (ENOENT): this place takes no folders, so choose another one`;
  if (NOT_A_FOLDER.has(error?.code))
    return `${subject} cannot be used (${error.code}): there is a file where a folder is needed`;
  return null;
};

/**
 * Converts a full disk or an unusable folder to a UserError. Returns other errors unchanged.
 * @type {import('./types.js').ToUserError}
 */
export const toUserError = (error, subject, advice = '') => {
  const explanation = error instanceof UserError ? null : explainSystemError(error, subject);
  return explanation === null
    ? error
    : new UserError(explanation + (advice === '' ? '' : ` (${advice})`), { cause: error });
};
