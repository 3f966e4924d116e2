import { decodedPart, rawTarget } from '../http/request-target.ts'

interface Pattern {
  readonly segments: readonly string[]
  /** Position of the parameter that takes several. */
  readonly at: number
  /** Fixed segments: the pattern with more of them is the more exact one. */
  readonly fixed: number
}

/**
 * Creates what lets the names of images and packages keep their slashes in a path: a router takes one segment for a parameter, in
 * which a slash is `%2F`.
 */
export function createSegmentJoiner() {
  const patterns: Pattern[] = []
  return {
    /** Adds a path with a parameter `{name+}`, which takes one segment or more. Throws for one with two of them. */
    add: (path: string): void => {
      patterns.push(compile(path))
      patterns.sort((one, other) => other.fixed - one.fixed)
    },
    /** Returns a target with the slashes of such a parameter encoded; any other target as it is. */
    join: (target: string): string => {
      if (patterns.length === 0) return target
      const { path } = rawTarget(target)
      const tail = path.endsWith('/') ? '/' : ''
      const given = path.slice(1, path.length - tail.length).split('/')
      const pattern = patterns.find((one) => fits(one, given))
      if (pattern === undefined || given.length === pattern.segments.length) return target
      const { at, segments } = pattern
      const end = at + 1 + given.length - segments.length
      const joined = [...given.slice(0, at), given.slice(at, end).join('%2F'), ...given.slice(end)]
      return `/${joined.join('/')}${tail}${target.slice(path.length)}`
    },
  }
}

function compile(path: string): Pattern {
  const segments = path.split('/').slice(1)
  const several = segments.filter((one) => one.endsWith('+}'))
  if (several.length !== 1) throw new Error(`${path} has not one parameter that takes several segments`)
  return {
    segments,
    at: segments.findIndex((one) => one.endsWith('+}')),
    fixed: segments.filter((one) => !one.startsWith('{')).length,
  }
}

function fits({ segments, at }: Pattern, given: readonly string[]): boolean {
  const more = given.length - segments.length
  if (more < 0) return false
  const isEmpty = given.slice(at, at + 1 + more).includes('')
  return (
    !isEmpty &&
    segments.every((one, n) => one.startsWith('{') || one === decodedPart(given[n > at ? n + more : n] ?? ''))
  )
}
