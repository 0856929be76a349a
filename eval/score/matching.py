"""Golden calls and predicted calls, paired off."""


def all_matched(fits: list[list[int]]) -> bool:
    """Whether every golden call can have a predicted call of its own (maximum bipartite matching).

    `fits`: for each golden call the predicted ones that meet it. Searched in breadth, without recursion: a
    case may expect more calls than Python has frames.
    """
    of_golden: dict[int, int] = {}
    of_predicted: dict[int, int] = {}
    for start in range(len(fits)):
        reached_from: dict[int, int] = {}
        free = None
        waiting = [start]
        for golden in waiting:
            for index in fits[golden]:
                if index in reached_from:
                    continue
                reached_from[index] = golden
                if index not in of_predicted:
                    free = index
                    break
                waiting.append(of_predicted[index])
            if free is not None:
                break
        # Each golden call on the way takes the prediction that it was reached for, and leaves its own.
        while free is not None:
            golden = reached_from[free]
            left = of_golden.get(golden)
            of_golden[golden], of_predicted[free] = free, golden
            free = left
        if start not in of_golden:
            return False
    return True
