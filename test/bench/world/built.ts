/** Imports a module of the built program, by its path in `dist`. */
export const built = (file: string): Promise<unknown> => import(`${process.cwd()}/dist/${file}`)
