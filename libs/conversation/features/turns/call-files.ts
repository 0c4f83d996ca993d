import {
  attachedSections,
  estimateTokens,
  fileLabel,
  hasFiles,
  isImage,
  isSentAsBytes,
  renderSections,
} from '@antiphon/conversation-domain';
import type { AttachedSection, PromptFile, PromptParts, SessionState } from '@antiphon/conversation-domain';
import type { BlobStore } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import { ModelFailure, estimateFile, filesOf } from '@antiphon/providers-domain';
import type { ModelFile, ModelInputs, ModelPort, ModelPrompt, UserMessage } from '@antiphon/providers-domain';
import { FileTextReader, goneNote } from './read-attached.js';

/** Maximum size of all images and documents of one call. Vendors take 32 MB of JSON. */
const MAX_CALL_BYTES = 20 * 1_024 * 1_024;
/** Maximum number of images of one call. With more, vendors take smaller ones only. */
const MAX_CALL_IMAGES = 20;

const NO_IMAGES = '[not sent: this model takes no images]';
const LEFT_OUT = '[left out: the images and documents of this call are too large together]';

export interface CallFilesDeps {
  readonly blobs: Pick<BlobStore, 'read' | 'readPart'>;
  readonly models: Pick<ModelPort, 'inputsOf' | 'open'>;
}

/** A call whose files are prepared. */
export interface CallWithFiles {
  readonly workspace: string;
  readonly state: SessionState;
  readonly choice: { readonly provider: string; readonly model: string };
  /** Size of the context, tokens: files that are sent as text have a share of it. */
  readonly contextTokens: number;
  /** True if the agent has the tool `read`. */
  readonly canRead: boolean;
}

/** The parts of a prompt that files are, and how each file is in it. */
export interface PreparedFiles extends Required<
  Pick<PromptParts, 'attached' | 'attachedMedia' | 'fileTexts'>
> {
  /** Attached files, and those of the open turn. */
  readonly views: readonly FileView[];
}

/** A file of a call, and how its model gets it. */
export interface FileView {
  readonly file: PromptFile;
  readonly isAttached: boolean;
  readonly sentAs: 'text' | 'image' | 'document' | 'nothing';
  readonly tokens: number;
  readonly wholeTokens: number;
  readonly isCut: boolean;
}

const NOTHING: PreparedFiles = { attached: null, attachedMedia: [], fileTexts: new Map(), views: [] };

/** Returns the failure of a call that was not sent. */
const notSent = (why: ModelFailure['why']): ModelFailure =>
  new ModelFailure({ reason: 'provider_error', why, dispatched: false, retryable: false });

const isImageFile = ({ media }: PromptFile): boolean => media !== undefined && isImage(media);

/** Describes how the model of a call gets a file. */
const viewOf = (
  file: PromptFile,
  asText: boolean,
  sections: readonly AttachedSection[],
): Omit<FileView, 'isAttached'> => {
  const { media } = file;
  if (!asText && media) {
    const tokens = estimateFile(media);
    const sentAs = isImage(media) ? 'image' : 'document';
    return { file, sentAs, tokens, wholeTokens: tokens, isCut: false };
  }
  const section = sections.find((one) => one.file.path === file.path && one.file.digest === file.digest);
  const tokens = estimateTokens(`${fileLabel(file)}\n${section?.text ?? ''}`);
  const isCut = section?.isCut ?? true;
  const text = section?.file.text ?? null;
  if (text === null) return { file, sentAs: 'nothing', tokens, wholeTokens: tokens, isCut };
  // Of a part of a file only its size is known.
  const wholeTokens = !isCut
    ? tokens
    : section?.file.isPart
      ? Math.ceil(file.size / 3)
      : estimateTokens(text);
  return { file, sentAs: 'text', tokens, wholeTokens: Math.max(tokens, wholeTokens), isCut };
};

/** Prepares the files of model calls: their texts and their bytes. */
export class CallFiles {
  private readonly texts: FileTextReader;

  constructor(private readonly deps: CallFilesDeps) {
    this.texts = new FileTextReader(deps.blobs);
  }

  /**
   * Decides how the model of a call gets each file, and reads those that it gets as text. Throws a
   * `ModelFailure` for an image that the model does not take.
   */
  async prepare(call: CallWithFiles): Promise<PreparedFiles> {
    const { state, choice, workspace } = call;
    const current = [...state.attached, ...(state.open?.files ?? [])];
    const earlier = state.recent.flatMap(({ files = [] }) => files);
    if (current.length + earlier.length === 0) return NOTHING;
    await this.deps.models.open(choice.provider, workspace);
    const inputs = this.deps.models.inputsOf(choice, workspace);
    const refused = current.filter((file) => isImageFile(file) && !inputs.images);
    if (refused.length > 0)
      throw notSent({
        kind: 'images_not_taken',
        ...{ provider: choice.provider, model: choice.model },
        paths: refused.map(({ path }) => path).join(', '),
      });
    return this.readTexts(call, inputs, earlier);
  }

  /** As `prepare`, for a description: an image that the model does not take is no failure. */
  async describe(call: CallWithFiles): Promise<PreparedFiles> {
    const { choice, workspace, state } = call;
    const earlier = state.recent.flatMap(({ files = [] }) => files);
    if (!hasFiles(state)) return NOTHING;
    await this.deps.models.open(choice.provider, workspace);
    return this.readTexts(call, this.deps.models.inputsOf(choice, workspace), earlier);
  }

  /**
   * Returns the prompt with the bytes of its files. A note stands for bytes that are gone, and for
   * the oldest files if all have more than `tokens`.
   */
  async fill(workspace: string, prompt: ModelPrompt, tokens: number): Promise<ModelPrompt> {
    const files = filesOf(prompt);
    if (files.length === 0) return prompt;
    const data = await this.readBytes(workspace, files, tokens);
    const messages = prompt.messages.map((message) =>
      message.role === 'user' && message.files ? fillMessage(message, data) : message,
    );
    return { ...prompt, messages };
  }

  private async readTexts(
    { workspace, state, contextTokens, canRead }: CallWithFiles,
    inputs: ModelInputs,
    earlier: readonly PromptFile[],
  ): Promise<PreparedFiles> {
    const asText = (file: PromptFile): boolean => !isSentAsBytes(file, inputs);
    const asNote = (file: PromptFile): boolean => asText(file) && isImageFile(file);
    const sent = state.open?.files ?? [];
    const hasText = (file: PromptFile): boolean => asText(file) && !isImageFile(file);
    const current = [...state.attached, ...sent].filter(hasText);
    const read = async (files: readonly PromptFile[]): Promise<AttachedSection[]> => {
      const texts = await this.texts.read(workspace, files);
      return texts.length === 0 ? [] : attachedSections(texts, contextTokens, canRead);
    };
    const sections = await read(current);
    const past = await read(earlier.filter(hasText));
    const attached = sections.slice(0, state.attached.filter(hasText).length);
    const fileTexts = new Map<string, string>();
    for (const { digest } of [...earlier, ...sent].filter(asNote)) fileTexts.set(digest, NO_IMAGES);
    for (const { file, text } of [...past, ...sections]) fileTexts.set(file.digest, text);
    const views = [...state.attached, ...sent].map((file, index) => ({
      ...viewOf(file, asText(file), sections),
      isAttached: index < state.attached.length,
    }));
    return {
      attached: renderSections(attached),
      attachedMedia: state.attached.filter((file) => !asText(file)),
      ...{ fileTexts, views },
    };
  }

  /** Reads the newest files first, up to the bounds of a call. */
  private async readBytes(
    workspace: string,
    files: readonly ModelFile[],
    tokens: number,
  ): Promise<ReadonlyMap<string, Filled>> {
    const filled = new Map<string, Filled>();
    let room = MAX_CALL_BYTES;
    let [images, left] = [0, tokens];
    for (const { digest, media } of files.toReversed()) {
      if (filled.has(digest)) continue;
      // The newest file is always sent: its vendor says whether it fits.
      left -= filled.size === 0 ? 0 : estimateFile(media);
      if (left < 0 || (isImage(media) && ++images > MAX_CALL_IMAGES)) {
        filled.set(digest, { note: LEFT_OUT });
        continue;
      }
      const found = await this.readOne(workspace, digest);
      const size = 'bytes' in found ? found.bytes.byteLength : 0;
      room -= size;
      if ('note' in found) filled.set(digest, found);
      else if (room < 0) filled.set(digest, { note: LEFT_OUT });
      else filled.set(digest, { data: Buffer.from(found.bytes).toString('base64') });
    }
    return filled;
  }

  private async readOne(
    workspace: string,
    digest: string,
  ): Promise<{ readonly bytes: Uint8Array } | { readonly note: string }> {
    try {
      return { bytes: await this.deps.blobs.read(workspace, digest) };
    } catch (error) {
      const note = isAppError(error) ? goneNote(error.code) : undefined;
      if (note === undefined) throw error;
      return { note };
    }
  }
}

type Filled = { readonly data: string } | { readonly note: string };

/** Fills in the bytes of the files of a message. A file without bytes becomes a note in its place. */
const fillMessage = (message: UserMessage, filled: ReadonlyMap<string, Filled>): UserMessage => {
  let { text } = message;
  let shift = 0;
  const files: ModelFile[] = [];
  for (const file of message.files ?? []) {
    const at = file.at + shift;
    const found = filled.get(file.digest);
    if (found && 'data' in found) {
      files.push({ ...file, at, data: found.data });
      continue;
    }
    const note = `\n${found?.note ?? LEFT_OUT}`;
    text = text.slice(0, at) + note + text.slice(at);
    shift += note.length;
  }
  const { files: _files, ...rest } = message;
  return { ...rest, text, ...(files.length > 0 ? { files } : {}) };
};
