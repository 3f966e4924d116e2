/** What happens in the daemon, for the parts that follow it. */
interface Happenings {
  /** More is served, up to this entry of the change log. */
  readonly served: (upTo: number) => void
  /** Other views for scanners can be served. */
  readonly views: () => void
  /** The tags were judged again. */
  readonly judged: () => void
  /** A delivery was stored. */
  readonly delivered: () => void
  /** Settings of the relay changed, or whether this mirror leads. */
  readonly relaySettings: () => void
  /** The settings name other times for what is scheduled. */
  readonly schedules: () => void
}

/** Tells what happens to all that follow it, in the order in which they were added. */
export type Signals = ReturnType<typeof createSignals>

/** Creates the signals of a daemon. */
export function createSignals() {
  const followers: { readonly [Name in keyof Happenings]: Happenings[Name][] } = {
    served: [],
    views: [],
    judged: [],
    delivered: [],
    relaySettings: [],
    schedules: [],
  }
  return {
    on: <Name extends keyof Happenings>(name: Name, follow: Happenings[Name]): void =>
      void followers[name].push(follow),
    send<Name extends keyof Happenings>(name: Name, ...about: Parameters<Happenings[Name]>): void {
      for (const follow of followers[name]) (follow as (...about: unknown[]) => void)(...about)
    },
  }
}
