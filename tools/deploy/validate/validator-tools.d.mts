export function hasValidators(cache: string): boolean;
