/** A failure whose message is all that a user needs: no stack is printed. */
export class UserError extends Error {
  /** @param {string} message @param {{exitCode?: number, cause?: unknown}} [options] */
  constructor(message, options = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'UserError';
    /** 1: it failed. 2: bad usage or configuration. */
    this.exitCode = options.exitCode ?? 1;
  }
}

const DISK_FULL = /ENOSPC|EDQUOT|no space left on device|disk quota exceeded/i;
const READ_ONLY = new Set(['EROFS', 'EACCES', 'EPERM']);
const NOT_A_FOLDER = new Set(['EEXIST', 'ENOTDIR']);

/** What a system error means to a user, or null when it is none of the usual ones. */
export const explainSystemError = (error, subject) => {
  if (DISK_FULL.test(`${error?.code ?? ''} ${error?.message ?? error}`)) {
    return `the disk that holds ${subject} is full: free some space and run it again; nothing has to be cleaned up first`;
  }
  if (READ_ONLY.has(error?.code)) {
    return `${subject} cannot be written (${error.code}): make it writable for this user, or choose another place`;
  }
  if (NOT_A_FOLDER.has(error?.code)) {
    return `${subject} cannot be used (${error.code}): there is a file where a folder is needed`;
  }
  return null;
};

/** Turns a full disk or a read-only folder into a UserError about `subject`; anything else is returned as it is. */
export const toUserError = (error, subject, hint = '') => {
  if (error instanceof UserError) return error;
  const meaning = explainSystemError(error, subject);
  return meaning === null
    ? error
    : new UserError(meaning + (hint === '' ? '' : ` (${hint})`), { cause: error });
};
