export interface Contents {
  readonly main: string;
  readonly files?: readonly string[];
  readonly resolves?: readonly string[];
  readonly leavesOut?: readonly string[];
}
export const IMAGES: Readonly<Record<string, Contents>>;
export const IMAGE_NAMES: readonly string[];
export function isStaged(packageName: string, path: string, arch: 'x64' | 'arm64'): boolean;
