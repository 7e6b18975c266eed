// SPDX-License-Identifier: Apache-2.0

// Package refusals decides what it means for a release that Serin's proxies refuse requests
// by themselves, without asking either version. It is pure: windows in, a decision out.
//
// No version is compared, because no version had a part in it: both suffer alike. What was
// refused is counted, not estimated, so there is no chance in it either. What can be wrong is
// the cause: a proxy is full as well when the pods behind it take longer than they did, or do
// not answer, and then a rollback helps no user.
//
//	a window in which the proxies                                   holds   rolls back
//	----------------------------------------------------------------+-------+----------------------
//	refuse no more than is tolerated                                 no      no; counts in favour
//	refuse more, of more than ever came, and pass on about as
//	much as ever, which succeeds                                     yes     once it lasted
//	refuse more, of no more than came before: pods got slower        yes     no; counts in favour
//	refuse more, and pass on less than they did: pods got slower     yes     no; counts in favour
//	refuse more, and what they pass on fails                         yes     no; counts in favour
//	say nothing of what they refuse, or had no request               as before
package refusals
