/** Reports whether a version of numbers and dots is older than another; what is missing counts as 0. */
export function isOlder(version: string, than: string): boolean {
  const [own, other] = [version, than].map((text) => text.split('.').map((part) => parseInt(part)))
  for (let at = 0; at < 3; at++) {
    const difference = (own?.[at] ?? 0) - (other?.[at] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}
