import { textOfParts } from '@antiphon/contracts/agent';
import type { ContentPart, MediaFacts, MessageBody, MessageFile } from '@antiphon/contracts/agent';
import { fileTreeIdOf } from '@antiphon/agent-log';
import { isImage } from '@antiphon/conversation-domain';
import type { BlobStore } from '@antiphon/database';
import { inspectMedia, refuseMedia } from '@antiphon/files-features';
import type { FileTrees, StoredFile } from '@antiphon/files-features';
import { conflict, createBoundedMap, notFound, toStorable } from '@antiphon/kernel';
import type { RoleFiles } from './role-files.js';

export interface TurnFilesDeps {
  readonly roles: RoleFiles;
  readonly trees: Pick<FileTrees, 'read'>;
  readonly blobs: Pick<BlobStore, 'read' | 'readPart'>;
}

/** Text and files of a message, as its fact has them. */
export interface MessageContents {
  readonly content: string;
  readonly files?: readonly MessageFile[];
}

/** Number of versions whose facts are cached. Their digests name them. */
const MAX_KNOWN = 1_000;

/** Files that a turn begins with: the file of its role, and those of its message. */
export class TurnFiles {
  private readonly known = createBoundedMap<{ readonly media: MediaFacts | undefined }>(MAX_KNOWN);

  constructor(private readonly deps: TurnFilesDeps) {}

  get roles(): RoleFiles {
    return this.deps.roles;
  }

  /** Returns a file of the workspace as it is now, with its facts. Throws `CHAT.FILE_NOT_FOUND`. */
  async find(workspace: string, path: string): Promise<Omit<MessageFile, 'at'>> {
    const name = path.normalize('NFC');
    const { files } = await this.deps.trees.read(workspace, fileTreeIdOf(workspace));
    const file = files.get(name);
    if (!file) throw notFound('CHAT.FILE_NOT_FOUND', `there is no file "${name}" in the workspace`);
    const { digest, size } = file;
    const media = await this.inspect({ workspace, path: name, digest, size });
    return { path: name, digest, size, ...(media === undefined ? {} : { media }) };
  }

  /** Returns the text and the files of a message. */
  async resolve(workspace: string, body: MessageBody): Promise<MessageContents> {
    if (typeof body === 'string') return { content: toStorable(body) };
    const content = toStorable(textOfParts(body));
    const files: MessageFile[] = [];
    for (const [index, part] of body.entries()) {
      if (part.type === 'text') continue;
      const at = toStorable(textOfParts(body.slice(0, index))).length;
      files.push({ ...(await this.fileOf(workspace, part)), at });
    }
    return files.length === 0 ? { content } : { content, files };
  }

  private async fileOf(
    workspace: string,
    part: Exclude<ContentPart, { type: 'text' }>,
  ): Promise<Omit<MessageFile, 'at'>> {
    const file = await this.find(workspace, part.path);
    if (part.digest !== undefined && part.digest !== file.digest)
      throw conflict('CHAT.FILE_CHANGED', `the file "${file.path}" is another version: ${file.digest}`);
    if (part.type === 'image' && !(file.media && isImage(file.media))) throw refuseMedia(file, 'no_image');
    return file;
  }

  private async inspect(file: StoredFile): Promise<MediaFacts | undefined> {
    const key = `${file.workspace}\n${file.digest}`;
    const known = this.known.get(key);
    if (known) return known.media;
    const media = await inspectMedia(this.deps.blobs, file);
    this.known.put(key, { media });
    return media;
  }
}
