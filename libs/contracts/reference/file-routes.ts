import { z } from 'zod';
import { changeFiles, eraseFiles, listFiles, readFileHistory } from '../agent/file-requests.js';
import {
  ByFile,
  ByWorkspace,
  FileChangesBody,
  FileDeleteQuery,
  FileErasureBody,
  FileHistoryQuery,
  FileQuery,
  FilesQuery,
  FileWriteBody,
  FileWriteQuery,
} from '../gateway/index.js';
import { IDS } from './examples.js';
import { defineRoute } from './http-route.js';

const WORKSPACE = { id: 'default' };
const FILE = { ...WORKSPACE, path: 'plan.md' };
const DIGEST = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const CHANGED = {
  version: 12,
  files: [{ path: FILE.path, digest: DIGEST, before: null, size: 4, version: 12 }],
};
const NO_FILE = {
  403: '`AGENT.NOT_ALLOWED`: the key of an agent uses no files',
  404: 'there is no such workspace, file or version',
};
const REFUSED = {
  ...NO_FILE,
  409:
    '`FILE.STALE` or `FILE.EXISTS`: the file is not as expected, and `detail` names it. `data.diff` of ' +
    '`FILE.STALE` shows what changed since, as a unified diff of a text of at most 1 MiB',
  422: 'the path clashes with another one, is a folder, or is built on read',
  429: '`FILE.QUOTA`: the workspace would be over a quota of `[files]`',
};

/** Routes of the files of a workspace. */
export const FILE_ROUTES = {
  listFiles: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces/{id}/files',
    access: 'files:read',
    tag: 'Files',
    summary: 'List files',
    description:
      'Returns the files and folders of a folder by path, at any version of the tree or position of the log. Chats ' +
      'are among them with `is_virtual: true`. With `recursive` and `q` it finds files by their names.',
    params: ByWorkspace,
    query: FilesQuery,
    reply: { schema: listFiles.reply },
    example: {
      params: WORKSPACE,
      query: { path: '' },
      reply: {
        version: 12,
        entries: [
          {
            ...{ path: FILE.path, kind: 'file', size: 4, digest: DIGEST, mode: 420, version: 12 },
            is_virtual: false,
            ...{ changedAt: '2026-11-21T09:30:00.125Z', changedBy: 'agent/main' },
          },
        ],
        total: 1,
        nextCursor: null,
      },
    },
    problems: NO_FILE,
  }),
  readFile: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces/{id}/files/{path}',
    rest: 'path',
    access: 'files:read',
    tag: 'Files',
    summary: 'Read a file',
    description:
      'Returns the bytes of a file, or a part of them, at any version of the tree. `ETag` is the digest, and ' +
      '`X-File-Version` the version of the tree.',
    params: ByFile,
    query: FileQuery,
    reply: { schema: z.string(), media: 'application/octet-stream' },
    example: { params: FILE, query: { at: 12 } },
    problems: NO_FILE,
  }),
  writeFile: defineRoute({
    method: 'put',
    path: '/api/v1/workspaces/{id}/files/{path}',
    rest: 'path',
    access: 'files:write',
    tag: 'Files',
    summary: 'Write a file',
    description:
      'Writes a whole file. `expect` refuses the write if the file changed after it was read. A body of ' +
      '`application/octet-stream` is the bytes, up to `[files] max_file_bytes`; its options are in the query, and ' +
      'quotas are checked before a byte is read.',
    params: ByFile,
    query: FileWriteQuery,
    body: FileWriteBody,
    upload: true,
    reply: { schema: changeFiles.reply },
    example: { params: FILE, body: { text: 'test', expect: null }, reply: CHANGED },
    problems: REFUSED,
  }),
  deleteFile: defineRoute({
    method: 'delete',
    path: '/api/v1/workspaces/{id}/files/{path}',
    rest: 'path',
    access: 'files:write',
    tag: 'Files',
    summary: 'Delete a file',
    description:
      'Moves a file to the bin, from which it can be restored. A folder needs the number of its files.',
    params: ByFile,
    query: FileDeleteQuery,
    reply: { schema: changeFiles.reply },
    example: {
      params: FILE,
      reply: {
        version: 13,
        files: [{ path: FILE.path, digest: null, before: DIGEST, size: 0, version: 13 }],
      },
    },
    problems: REFUSED,
  }),
  changeFiles: defineRoute({
    method: 'post',
    path: '/api/v1/workspaces/{id}/file-changes',
    access: 'files:write',
    tag: 'Files',
    summary: 'Change files',
    description:
      'Moves, restores and deletes files, or writes bytes that are stored: all changes, or none. `restore` takes the ' +
      'file from the bin, or from a version of the tree.',
    params: ByWorkspace,
    body: FileChangesBody,
    idempotent: true,
    reply: { schema: changeFiles.reply },
    example: {
      params: WORKSPACE,
      body: { changes: [{ op: 'restore', path: FILE.path, version: 12 }] },
      reply: CHANGED,
    },
    problems: REFUSED,
  }),
  eraseFiles: defineRoute({
    method: 'post',
    path: '/api/v1/workspaces/{id}/file-erasures',
    access: 'operations:write',
    tag: 'Files',
    summary: 'Erase the bytes of files',
    description:
      'Erases bytes for ever: of a digest, of a file at a version, or of all versions of a file, with those of forked ' +
      'sessions. With `session` it erases the versions of this session. Files that have the bytes now go to the bin. Facts and histories stay, with texts in turns and previews of approvals, and reads answer `FILE.ERASED`. A repeated request changes nothing.',
    params: ByWorkspace,
    body: FileErasureBody,
    reply: { schema: eraseFiles.reply },
    example: {
      params: WORKSPACE,
      body: { path: FILE.path, reason: 'personal data' },
      reply: { erased: [DIGEST], already: 0, deleted: [FILE.path], kept: [] },
    },
    problems: NO_FILE,
  }),
  readFileHistory: defineRoute({
    method: 'get',
    path: '/api/v1/workspaces/{id}/file-history',
    access: 'files:read',
    tag: 'Files',
    summary: 'Read the history of files',
    description:
      'Returns the changes of a file, a folder or the whole tree, newest first, up to a version of the tree or a ' +
      'position of the log. `cause` names the actor and, for a tool call, its session, turn and call.',
    params: ByWorkspace,
    query: FileHistoryQuery,
    reply: { schema: readFileHistory.reply },
    example: {
      params: WORKSPACE,
      query: { path: FILE.path },
      reply: {
        changes: [
          {
            ...{
              version: 12,
              type: 'written',
              path: FILE.path,
              to: null,
              digest: DIGEST,
              before: null,
              size: 4,
            },
            cause: { actor: 'agent/main', sessionId: IDS.session, turnId: IDS.turn, callId: IDS.turn },
            ...{ eventId: IDS.turn, eventPosition: 412, at: '2026-11-21T09:30:00.125Z' },
          },
        ],
        nextCursor: null,
      },
    },
    problems: NO_FILE,
  }),
} as const;
