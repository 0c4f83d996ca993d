export function stageImage(options: {
  root: string;
  name: string;
  target: string;
  arch: 'x64' | 'arm64';
}): void;
