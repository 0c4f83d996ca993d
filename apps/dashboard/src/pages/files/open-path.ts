import { keepPosition, navigate } from '../../data/router.js';

/** Returns the page of a path. Each name is escaped for itself, so that its folders stay readable. */
export const pageOfFile = (path: string): string =>
  path === '' ? '/files' : `/files/${path.split('/').map(encodeURIComponent).join('/')}`;

export const openPath = (path: string): void => navigate(keepPosition(pageOfFile(path)));
