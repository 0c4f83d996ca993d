export { compareDisk, conflictPath } from './compare-disk.js';
export type { DiskComparison, DiskDifference, FileContent } from './compare-disk.js';
export { checkRemoval, countLines, editAll, editBytes } from './edit-text.js';
export type { TextEdit } from './edit-text.js';
export {
  comparePaths,
  foldCase,
  foldersOf,
  isBelow,
  isVirtualPath,
  normalizeFolder,
  normalizePath,
} from './file-path.js';
export { decideFiles, requireFile } from './file-tree.decider.js';
export type { FileCommand, FileDecisionContext, FileLimits } from './file-tree.decider.js';
export { emptyFileTree, foldFileTree, streamVersionOf } from './file-tree.js';
export type { CallVersions, FileEntry, FileTree } from './file-tree.js';
export { imageTypeOf, isOldOffice, isPdf, isZip, readImageHeader } from './image-header.js';
export type { ImageHeader } from './image-header.js';
export { IgnoreRules, parseIgnoreFile } from './ignore-rules.js';
export { planRewind } from './rewind.js';
export type { RewindConflict, RewindPlan, VersionedChange } from './rewind.js';
export {
  isBareRepository,
  isPartOfRepository,
  outsideRepositories,
  programOfName,
  unsafePartOf,
} from './unsafe-names.js';
