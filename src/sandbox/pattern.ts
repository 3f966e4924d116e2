import { decode } from './routes.ts'

/** A whole path, in which `*` stands for any characters, or an expression to find in the path. */
export type PathPattern = string | RegExp

/** Compares with the path as sent and with its percent-decoded form. */
export function matches(pattern: PathPattern, path: string): boolean {
  const expression = typeof pattern === 'string' ? glob(pattern) : pattern
  const decoded = decode(path)
  return found(expression, path) || (decoded !== undefined && found(expression, decoded))
}

function found(expression: RegExp, text: string): boolean {
  expression.lastIndex = 0 // a global expression would go on from its last match
  return expression.test(text)
}

function glob(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}
