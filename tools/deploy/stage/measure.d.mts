export const BUDGET_BYTES: number;
export function gzipSize(folder: string): Promise<number>;
