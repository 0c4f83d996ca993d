export function findImages(text: string): { image: string; digest: string | undefined }[];
export function findLooseImages(root: string): { place: string; message: string }[];
export function pinImages(text: string, digestOf: (image: string) => string): string;
