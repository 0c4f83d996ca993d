export interface Progress {
  step<T>(label: string, work: (detail: (text: string) => void) => Promise<T>): Promise<T>;
  note(line: string): void;
}
export declare const createProgress: (write: (line: string) => void) => Progress;
